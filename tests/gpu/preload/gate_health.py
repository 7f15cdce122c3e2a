"""A second thread that answers /health while the first one's memory is away and comes back.

As a program it asks: gate_health.py PORT, a request every 5 ms, each on a connection of its own;
for a line on its input it says how many were answered since the last line, and the longest.
"""

import http.client
import http.server
import subprocess
import sys
import threading
import time

WITHIN_MS = 100.0
_EVERY_S = 0.005


class Answers:
    """A server's thread, and a process that asks it, from now until the end of this program."""

    def __init__(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # A process of its own: this one's interpreter may be what is held up.
        self.asker = subprocess.Popen(
            [sys.executable, "-B", __file__, str(server.server_port)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.since_last()

    def since_last(self):
        """How many were answered, and the longest in ms."""
        self.asker.stdin.write("\n")
        self.asker.stdin.flush()
        count, longest = self.asker.stdout.readline().split()
        return int(count), float(longest)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def serve(answer, what):
    """As gate_requests.serve, with what /health took during the first answer of each turn.

    `goes on` is whether it was asked all the while and no answer took longer than 100 ms.
    """
    import gate_requests

    before = answer()
    if answer() != before:
        sys.exit("the answers differ while the memory is there")
    health = Answers()
    print(f"ready {what}", flush=True)
    for turn in gate_requests.turns():
        health.since_last()
        began = time.monotonic()
        now = answer()
        took = time.monotonic() - began
        count, longest = health.since_last()
        # At least a question for each 100 ms, or it was not asked.
        goes_on = longest <= WITHIN_MS and count >= int(took * 10)
        print(f"turn {turn}: first answer {took * 1e3:.1f} ms, equal {now == before}; "
              f"{count} times /health, the longest {longest:.1f} ms, goes on {goes_on}", flush=True)


def ask(port):
    # Answered, the longest in ms, and when the question began that is not answered yet.
    lock, found = threading.Lock(), [0, 0.0, 0.0]

    def ask_on():
        while True:
            began = found[2] = time.monotonic()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("GET", "/health")
                right = connection.getresponse().read() == b"ok"
                connection.close()
            except OSError:
                right = False
            took = (time.monotonic() - began) * 1e3
            with lock:
                found[0] += right
                found[1] = max(found[1], took if right else 1e9)
                found[2] = 0.0
            time.sleep(_EVERY_S)

    threading.Thread(target=ask_on, daemon=True).start()
    for _ in sys.stdin:
        with lock:
            began = found[2]
            open_ms = (time.monotonic() - began) * 1e3 if began else 0.0
            print(found[0], max(found[1], open_ms), flush=True)
            found[:2] = 0, 0.0


if __name__ == "__main__":
    ask(int(sys.argv[1]))
