#!/usr/bin/env python3
"""The image server in memory of a `host` device: neither a GPU nor PyTorch is needed.

    host_server.py --socket-dir DIR [--gate]

Its memory is leases, behind a cache that keeps what was freed, as PyTorch's does. Without
--gate nobody can ask it for that. With it the server says where it works (scopes), and
gives up its cache when the broker asks.
"""

import argparse
import sys
import threading
import time
import zlib

import gmb
from image_http import OutOfMemory, serve

MIB = 1 << 20
IMAGE = 4 * MIB  # bytes of an image between two layers
LAYERS = 3


class Cache:
    """Blocks of leased memory; those that were freed are kept for the next batch."""

    def __init__(self, socket_dir, gate, wait):
        self._lock = threading.Lock()
        self._free = []
        self.client = gmb.connect(socket_dir, program="image server",
                                  on_trim=self.trim if gate else None)
        self.gate = gate
        self._wait = wait  # seconds for memory that others have

    def take(self, nbytes):
        with self._lock:
            fitting = [lease for lease in self._free if lease.size_bytes >= nbytes]
            if fitting:
                best = min(fitting, key=len)
                self._free.remove(best)
                return best
        try:
            return self.client.acquire(nbytes, wait=self._wait)
        except gmb.OutOfMemoryError as error:
            raise OutOfMemory(str(error)) from None

    def keep(self, lease):
        with self._lock:
            self._free.append(lease)
        self.tell()

    def trim(self, _device="", _nbytes=0, _seconds=0.0):
        """Called on a thread of the library when others need memory."""
        with self._lock:
            leases, self._free = self._free, []
        for lease in leases:
            lease.release()
        self.tell()

    def tell(self):
        """So that the broker asks those who have something."""
        if self.gate:
            with self._lock:
                nbytes = sum(map(len, self._free))
            self.client.set_trimmable(nbytes)


class Model:
    """Layers that turn bytes into others by a table and add weights to them."""

    name = "images"

    def __init__(self, socket_dir, gate, wait):
        self._wait = wait
        self._cache = Cache(socket_dir, gate, wait)
        self._client = self._cache.client
        self._weights = self._cache.take(LAYERS * IMAGE)
        view = self._weights.view()
        for layer in range(LAYERS):
            row = bytes((i * i * 31 + i * 7 + layer) % 256 for i in range(65521))
            view[layer * IMAGE:(layer + 1) * IMAGE] = (row * (IMAGE // len(row) + 1))[:IMAGE]
        view.release()
        if gate:
            self._weights.seal()
            self._client.gate_on()

    def infer(self, rows):
        began = time.perf_counter()
        met_evicted, scope = self._enter()
        entered = time.perf_counter()
        try:
            checksum = self._run(rows)
        finally:
            scope.__exit__(None, None, None)
        return {"sum": checksum, "met_evicted": met_evicted,
                "wait_ms": (entered - began) * 1e3, "run_ms": (time.perf_counter() - entered) * 1e3}

    def _enter(self):
        for wait in (0.005, self._wait):  # what is there can be had sooner than it is restored
            scope = self._client.active(wait=wait)
            try:
                scope.__enter__()
            except gmb.Error as error:  # not back, or not granted, so soon
                late = error
            else:
                return wait != 0.005, scope
        raise OutOfMemory(str(late)) from None

    def _run(self, rows):
        blocks = []
        try:
            for _ in range(2):  # the layers' input and output take turns
                blocks.append(self._cache.take(rows * IMAGE))
            return self._layers(rows, *(block.view() for block in blocks))
        finally:
            for block in blocks:
                self._cache.keep(block)

    def _layers(self, rows, source, target):
        weights = self._weights.view()
        try:
            for row in range(rows):
                pixel = bytes((i * 13 + row) % 256 for i in range(4096))
                source[row * IMAGE:(row + 1) * IMAGE] = pixel * (IMAGE // len(pixel))
            for layer in range(LAYERS):
                table = bytes((i * 167 + layer) % 256 for i in range(256))
                weight = int.from_bytes(weights[layer * IMAGE:(layer + 1) * IMAGE], "little")
                for row in range(rows):
                    part = slice(row * IMAGE, (row + 1) * IMAGE)
                    image = int.from_bytes(bytes(source[part]).translate(table), "little")
                    target[part] = (image ^ weight).to_bytes(IMAGE, "little")
                source, target = target, source
            return zlib.crc32(source[:rows * IMAGE])
        finally:
            for view in (source, target, weights):
                view.release()

    def held_bytes(self):
        quota = self._client.quotas()[0]
        return quota.leased_bytes - quota.evicted_bytes

    def empty_cache(self):
        self._cache.trim()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--socket-dir", required=True)
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--wait", type=float, default=10.0, help="seconds for memory [10]")
    given = parser.parse_args()
    try:
        model = Model(given.socket_dir, given.gate, given.wait)
    except (gmb.Error, OutOfMemory) as error:
        sys.exit(f"host_server.py: {error}")
    serve(model)


if __name__ == "__main__":
    main()
