"""A model behind HTTP on 127.0.0.1: GET /healthz, POST /infer {"batch": N}, GET /stats."""

import http.server
import json
import signal
import threading


class OutOfMemory(Exception):
    """The batch did not fit; the message is the broker's, or the framework's."""


def serve(model, most_rows=64):
    """`model` has name, infer(rows) -> dict, held_bytes() and empty_cache(). Until SIGTERM."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path == "/healthz":
                self.answer(200, "ok")
            elif self.path == "/stats":
                with counters:
                    stats = {"model": model.name, **counts}
                self.answer(200, {**stats, "held_bytes": model.held_bytes()})
            else:
                self.answer(404, {"error": "there are /healthz, /infer, /empty_cache and /stats"})

        def do_POST(self):
            body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1 << 16))
            if self.path == "/empty_cache":
                model.empty_cache()
                self.answer(200, {})
            elif self.path == "/infer":
                self.infer(body)
            else:
                self.answer(404, {"error": "there are /healthz, /infer, /empty_cache and /stats"})

        def infer(self, body):
            try:
                rows = json.loads(body)["batch"]
                if type(rows) is not int or not 1 <= rows <= most_rows:
                    raise ValueError
            except (ValueError, KeyError, TypeError):
                self.answer(400, {"error": f'send {{"batch": N}}, N from 1 to {most_rows}'})
                return
            with counters:
                counts["requests"] += 1
            try:
                with turn:
                    result = model.infer(rows)
            except OutOfMemory as error:
                with counters:
                    counts["refused"] += 1
                self.answer(503, {"error": str(error)})
                return
            self.answer(200, {"model": model.name, "batch": rows, **result})

        def answer(self, code, body):
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    counters, turn = threading.Lock(), threading.Lock()
    counts = {"requests": 0, "refused": 0}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # shutdown() waits for serve_forever(), which this thread is in.
    stop = lambda *_: threading.Thread(target=server.shutdown).start()  # noqa: E731
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
    with turn:  # what is under way is finished
        server.server_close()
