"""lease_until.py FILE: leases, fills, reads and releases as fast as it can until FILE is there.

A program of the Debian package python3-gmb, for tools/check-packages. Its one session
has to live through an upgrade of the broker.
"""

import os
import sys

import gmb

SIZE = 4 << 20

with gmb.connect("/run/gmb", tenant="a") as client:
    session, leases = client.session_id, 0
    while not os.path.exists(sys.argv[1]):
        byte = leases % 251 + 1
        with client.acquire(SIZE, wait=60) as lease:
            lease.fill(byte)
            if lease.read(SIZE - 64, 64) != bytes([byte]) * 64:
                sys.exit(f"lease {leases} does not hold what was written to it")
        leases += 1
        if leases == 1:
            print("first lease", flush=True)
    if client.session_id != session:
        sys.exit("another session")
print(f"python3-gmb {gmb.__version__}: {leases} leases, one session")
