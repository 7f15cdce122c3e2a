"""One of several processes that load the same file: shared_worker.py SOCKET_DIR TENANT NAME
FILE [pause] [keep]

Says one JSON object a line. Loads when it is told "go" (with `pause` waits for another line
before it fills), then does what it is told: "sum", "park", "enter", "leave",
"read outside", "write", "end".
"""

import ctypes
import hashlib
import json
import sys

import gmb
from gmb import _shared_files


def say(**what):
    print(json.dumps(what), flush=True)


def told():
    return sys.stdin.readline().strip()


def fill(source, lease):
    say(step="filling")
    if "pause" in sys.argv:
        told()
    _shared_files.fill_host(source, lease)


def main():
    socket_dir, tenant, name, path = sys.argv[1:5]
    client = gmb.connect(socket_dir, tenant=tenant)
    say(step="ready", session=client.session_id)
    told()
    try:
        with _shared_files.Source(path) as source:
            uuid = client.devices[0].uuid
            lease = _shared_files.load(
                client, name, source, fill, device=uuid, wait=60, keep="keep" in sys.argv
            )
            used = source.nbytes
    except Exception as error:
        say(step="failed", kind=type(error).__name__, message=str(error))
        return
    say(step="loaded", attached=lease.attached, bytes=lease.size_bytes)
    while (word := told()) not in ("end", ""):
        if word == "sum":
            with client.active(wait=30), lease.view() as view, view[:used] as content:
                say(step="sum", sum=hashlib.sha256(content).hexdigest())
        elif word == "park":
            client.gate_on(park_after=0.001)
            say(step="parked")
        elif word == "enter":
            client.enter()
            say(step="entered")
        elif word == "leave":
            client.leave()
            say(step="left")
        elif word == "read outside":
            ctypes.string_at(lease.address, 1)
            say(step="read")
        elif word == "write":
            ctypes.memset(lease.address, 0, 1)
            say(step="written")
    lease.release()
    client.close()
    say(step="ended")


main()
