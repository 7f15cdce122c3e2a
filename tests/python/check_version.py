#!/usr/bin/env python3
"""The package's version, said in two places, is the project's: check_version.py VERSION."""

import pathlib
import re
import sys

package = pathlib.Path(__file__).resolve().parents[2] / "client" / "python"
for place in ("pyproject.toml", "gmb/_version.py"):
    found = re.search(r'version(?:__)? = "([^"]+)"', (package / place).read_text())
    if found is None or found.group(1) != sys.argv[1]:
        sys.exit(f"client/python/{place} is not version {sys.argv[1]}")
