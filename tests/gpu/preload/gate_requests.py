"""A server of one question: answers it whenever DIR/go-N appears, until DIR/end does."""

import os
import sys
import time


def turns():
    """Yields 1, 2, ... as the requests come. Ends the program at DIR/end."""
    folder, turn = sys.argv[-1], 0
    while True:
        turn += 1
        while not os.path.exists(f"{folder}/go-{turn}"):
            if os.path.exists(f"{folder}/end"):
                print("end", flush=True)
                sys.exit(0)
            time.sleep(0.01)
        yield turn


def serve(answer, what):
    """Says "ready", and for each answer how long it took and whether it is as at first."""
    before = answer()
    if answer() != before:
        sys.exit("the answers differ while the memory is there")
    print(f"ready {what}", flush=True)
    for turn in turns():
        began = time.monotonic()
        now = answer()
        took = time.monotonic() - began
        began = time.monotonic()
        answer()
        resident = time.monotonic() - began
        print(f"turn {turn}: first answer {took * 1e3:.1f} ms, "
              f"resident {resident * 1e3:.1f} ms, equal {now == before}", flush=True)
