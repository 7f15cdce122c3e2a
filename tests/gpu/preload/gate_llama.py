"""llama.cpp's server as it comes, idle between HTTP requests. The weights are random.

LLAMA_CPP is the folder with llama-server.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time

import llama_model
from gate_requests import serve

FOLDER = sys.argv[1]
MODEL, SOCKET = os.path.join(FOLDER, "model.gguf"), os.path.join(FOLDER, "llama.sock")
LAYERS, WIDTH, CONTEXT = 8, 2048, 512


class Connection(http.client.HTTPConnection):
    """To the server's Unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(SOCKET)


def ask(method, path, body=None):
    connection = Connection("localhost", timeout=60)
    try:
        connection.request(method, path, body and json.dumps(body),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def is_healthy():
    try:
        return ask("GET", "/health")[0] == 200
    except OSError:
        return False  # it does not listen yet


class Health:
    """Asks for the server's health all the time, and keeps the longest answer."""

    def __init__(self):
        self.longest, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.ask_on)

    def ask_on(self):
        while not self.over.wait(0.005):
            began = time.monotonic()
            if is_healthy():
                self.longest = max(self.longest, time.monotonic() - began)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def answer():
    with Health() as health:
        status, said = ask("POST", "/completion", {
            "prompt": "Once upon a time", "n_predict": 16, "temperature": 0, "ignore_eos": True,
            "cache_prompt": False, "return_tokens": True})
    if status != 200 or len(said["tokens"]) != 16:
        sys.exit(f"the server answers {status}: {said}")
    print(f"its health meanwhile: {health.longest * 1e3:.1f} ms at most", flush=True)
    return said["tokens"]


SIZE = llama_model.make(MODEL, LAYERS, WIDTH, CONTEXT)
with open(os.path.join(FOLDER, "server.log"), "wb") as log:
    server = subprocess.Popen(
        [os.path.join(os.environ["LLAMA_CPP"], "llama-server"), "-m", MODEL, "--host", SOCKET,
         "-ngl", "99", "-c", str(CONTEXT), "--parallel", "1"], stdout=log, stderr=log)
try:
    while not is_healthy():
        if server.poll() is not None:
            with open(log.name, encoding="utf-8", errors="replace") as text:
                sys.exit(f"the server ends with {server.returncode}: {text.read()[-600:]}")
        time.sleep(0.05)
    serve(answer, f"{SIZE >> 20} MiB of weights")
finally:
    server.terminate()
    server.wait()
