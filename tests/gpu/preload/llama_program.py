"""llama.cpp's programs on leases, beside themselves: the same words, speed, out of memory.

    llama_program.py LIMIT FOLDER

FOLDER has llama-completion and llama-bench, built with CUDA. This program is started under
`gmb run`; without the preloaded library in the environment its children are native.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import llama_model
from checks import GIB, asked, attempt, await_leased, check, finish, mib, note

LIMIT, FOLDER = int(sys.argv[1]), sys.argv[2]
WORK = tempfile.TemporaryDirectory()
MODEL = os.path.join(WORK.name, "model.gguf")
NATIVE = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def command(name, *arguments):
    return [os.path.join(FOLDER, name), "-m", MODEL, *map(str, arguments)]


def words(environment, *arguments):
    """The model's continuation, always the likeliest byte."""
    return subprocess.run(
        command("llama-completion", "-p", "Once upon a time", "-n", 64, "--temp", 0, "--ignore-eos",
                "-no-cnv", "--no-warmup", "-c", 4096, *arguments),
        env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=100, check=False)


def same_words():
    wanted, got = words(NATIVE, "-ngl", 99), words(os.environ, "-ngl", 99)
    check("it generates", wanted.returncode == 0 and len(wanted.stdout) > 64, wanted.returncode)
    check("on leases the same bytes", got.returncode == 0 and got.stdout == wanted.stdout,
          f"{got.returncode}, {len(got.stdout)} bytes")
    if got.returncode != 0:
        note(got.stderr.decode(errors="replace")[-600:])


def what_is_leased():
    running = subprocess.Popen(
        command("llama-bench", "-ngl", 99, "-p", 512, "-n", 0, "-r", 2000),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        now = await_leased(lambda now: now >= SIZE, 30)
        check("as much as its weights is leased", now >= SIZE, f"{mib(now)}, the model has {mib(SIZE)}")
        note(f"and outside of leases, its CUDA context with them, {mib(outside())}")
    finally:
        running.kill()
        running.wait()
    after = await_leased(lambda now: now == 0, 20)
    check("killed, it gives all of it back", after == 0, mib(after))


def outside():
    """The bytes of the GPU that are taken past the broker, as it says."""
    return sum(pool["outside_bytes"] for pool in asked("status")["pools"])


def speed():
    rounds = {"native": [], "gmb run": []}
    for _ in range(3):
        for name, environment in (("native", NATIVE), ("gmb run", os.environ)):
            said = subprocess.run(
                command("llama-bench", "-ngl", 99, "-p", 512, "-n", 64, "-r", 3, "-o", "json"),
                env=environment, capture_output=True, timeout=100, check=True).stdout
            rounds[name].append([one["avg_ts"] for one in json.loads(said)])
    for i, what in enumerate(("a prompt of 512", "generating 64")):
        native, gmb = (statistics.median(one[i] for one in rounds[name]) for name in rounds)
        note(f"{what}: {native:.0f} tokens a second natively, {gmb:.0f} under gmb run: "
             f"{gmb / native:.3f}")


def out_of_memory():
    """A cache above the limit is refused, and llama.cpp ends by itself."""
    got = words(os.environ, "-ngl", 99, "-c", CONTEXT, "-fit", "off")
    text = got.stderr.decode(errors="replace")
    check("a cache above the limit ends in an error", got.returncode > 0, got.returncode)
    check("which is out of memory", "out of memory" in text or "failed to allocate" in text)


def fitting():
    """By default it takes the longest context that fits what is free, which is the tenant's."""
    got = words(os.environ, "-c", 0)
    check("the longest context that fits the limit", got.returncode == 0 and len(got.stdout) > 64,
          got.returncode)


WIDTH, LAYERS = 4096, 12
# K and V of so many tokens, in half precision, are a GiB above the limit.
CONTEXT = (LIMIT + GIB) // (2 * 2 * LAYERS * WIDTH)
SIZE = llama_model.make(MODEL, LAYERS, WIDTH, CONTEXT)
try:
    for step in (same_words, what_is_leased, out_of_memory, fitting, speed):
        attempt(step.__name__, step)
finally:
    WORK.cleanup()
finish()
