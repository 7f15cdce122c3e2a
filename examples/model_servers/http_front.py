"""A model server's HTTP: /healthz, /infer, /stats; and /load, /unload for who drives it."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

from model_servers.model import Model, Refused
from model_servers.worker import Worker


class Front(http.server.ThreadingHTTPServer):
    """Serves one model on 127.0.0.1."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, name: str, model: Model, worker: Worker) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.name = name
        self.model = model
        self.worker = worker
        self._state_lock = threading.Lock()
        self._loaded = False

    @property
    def loaded(self) -> bool:
        with self._state_lock:
            return self._loaded

    def load(self, share_bytes: int | None) -> None:
        """Unloads first what is loaded. May raise Refused: then nothing is."""
        self.unload()
        self.worker.call(lambda: self.model.load(share_bytes))
        with self._state_lock:
            self._loaded = True

    def unload(self) -> None:
        with self._state_lock:
            loaded, self._loaded = self._loaded, False
        if loaded:
            self.worker.call(self.model.unload)

    def infer(self, batch: int) -> dict[str, Any]:
        if not self.loaded:
            raise Refused("the model is not loaded")
        done = self.worker.infer(batch)
        return {
            "model": self.name,
            "batch": batch,
            "sum": done.sum,
            "met_evicted": done.met_evicted,
            "wait_ms": done.wait_ms,
            "run_ms": done.run_ms,
            "queue_ms": done.queue_ms,
            "began_at": done.began_at,
            "retried_ms": done.retried_ms,
        }

    def stats(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "requests": self.worker.requests,
            "refused": self.worker.refused,
            "held_bytes": self.model.held_bytes(),
            "peak_bytes": self.model.peak_bytes(),
        }


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet, when the request has been handled
    server: Front

    def do_GET(self) -> None:
        if self.path == "/healthz":
            if self.server.loaded:
                self._send(200, b"ok", "text/plain")
            else:
                self._send(503, b"not loaded", "text/plain")
        elif self.path == "/stats":
            self._send_json(200, self.server.stats())
        else:
            self._send_json(404, {"error": "GET /healthz or /stats"})

    def do_POST(self) -> None:
        try:
            given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
            if not isinstance(given, dict):
                raise ValueError("not an object")
            if self.path == "/infer":
                self._send_json(200, self.server.infer(self._batch(given)))
            elif self.path == "/load":
                share = given.get("share_bytes")
                self.server.load(None if share is None else int(share))
                self._send_json(200, self.server.stats())
            elif self.path == "/unload":
                self.server.unload()
                self._send_json(200, self.server.stats())
            else:
                self._send_json(404, {"error": "POST /infer"})
        except Refused as error:
            self._send_json(503, {"error": str(error)})
        except (ValueError, TypeError) as error:
            self._send_json(400, {"error": str(error)})
        except Exception as error:  # the server goes on; the one who asked hears why
            self._send_json(500, {"error": f"{type(error).__name__}: {error}"})

    def _batch(self, given: dict[str, Any]) -> int:
        batch = given.get("batch")
        most = self.server.model.max_batch
        if type(batch) is not int or not 1 <= batch <= most:
            raise ValueError(f"batch: a whole number from 1 to {most}")
        return batch

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
