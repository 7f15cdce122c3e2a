"""Stands for llama-server: its flags, its log and its HTTP, without a model.

An answer follows from the bytes of the model's file and the prompt. FAKE_LLAMA is what goes wrong:
no-memory (it ends), no-gpu (it goes on without one), dies (when it is asked).
"""

import argparse
import hashlib
import http.server
import json
import os
import signal
import socketserver
import sys

FAULT = os.environ.get("FAKE_LLAMA", "")


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("-m", "--host", "-ngl", "-fit", "-c", "--parallel", "--cache-ram", "--threads"):
        parser.add_argument(name, required=True)
    parser.add_argument("--log-file", required=True)
    parser.add_argument("--verbosity", type=int, choices=(4,), required=True)
    return parser.parse_args()


class Handler(http.server.BaseHTTPRequestHandler):
    looks = 0

    def do_GET(self):
        Handler.looks += 1
        self.send({"status": "ok"}, 200 if Handler.looks > 2 else 503)  # it loads for a while

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if FAULT == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        places = []
        for place in range(question["n_predict"]):
            text = f"{question['prompt']} {place}".encode()
            bits = hashlib.sha256(self.server.model + text).digest()
            top = [{"id": bits[i], "logprob": -bits[8 + i] / 7} for i in range(question["n_probs"])]
            places.append({**top[0], "top_logprobs": top})
        self.send({"completion_probabilities": places, "timings": {"predicted_ms": os.getpid()}})

    def send(self, body, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with open(options.log_file, "w", encoding="utf-8") as log:
        print("load_tensors:   CPU_Mapped model buffer size =     1.01 MiB", file=log)
        if FAULT == "no-memory":
            print("E alloc_tensor_range: failed to allocate CUDA0 buffer of size 5", file=log)
            sys.exit(1)
        if FAULT != "no-gpu":
            print("0.01 I load_tensors:        CUDA0 model buffer size =  1025.50 MiB", file=log)
            for cache in ("16.00", "32.00"):  # the last time counts
                print(f"0.02 I llama_kv_cache: CUDA0 KV buffer size = {cache:>8} MiB", file=log)
    with socketserver.UnixStreamServer(options.host, Handler) as server:
        with open(options.m, "rb") as model:
            server.model = model.read()
        server.serve_forever()


if __name__ == "__main__":
    main()
