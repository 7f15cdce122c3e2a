"""Prints the medians of two files of JSON lines, native and under `gmb run`, and their ratio."""

import json
import statistics
import sys


def medians(path):
    by_size = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("{"):
                one = json.loads(line)
                by_size.setdefault(one["size"], []).append(one["seconds"])
    return {size: statistics.median(times) for size, times in by_size.items()}


native, gmb = medians(sys.argv[1]), medians(sys.argv[2])
print(f"{'':44}  {'native us':>11}  {'gmb run us':>11}  native / gmb run")
for size, seconds in native.items():
    if size in gmb:
        print(f"{size:44}  {seconds * 1e6:11.2f}  {gmb[size] * 1e6:11.2f}  {seconds / gmb[size]:.3f}")
    else:
        print(f"{size:44}  {seconds * 1e6:11.2f}  {'none':>11}")
