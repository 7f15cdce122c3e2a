"""check_sbom.py PACKAGE...: each Debian package has a valid CycloneDX file.

It names all packages that PACKAGE depends on, with the version that was built against.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sbom_of(package, name):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
        return (pathlib.Path(folder) / "usr/share/doc" / name / "sbom.cdx.json").read_text()


def check(package):
    name = output("dpkg-deb", "--field", package, "Package").strip()
    text = sbom_of(package, name)
    wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    if wrong is not None:
        sys.exit(f"{package}: the SBOM is not valid: {wrong}")
    versions = {component["name"]: component["version"]
                for component in json.loads(text)["components"] if "version" in component}
    for component in json.loads(text)["components"]:
        if "purl" in component:
            url = PackageURL.from_string(component["purl"])
            if (url.name, url.version) != (component["name"], component["version"]):
                sys.exit(f"{package}: {component['purl']} is not {component['name']}")
    depends = output("dpkg-deb", "--field", package, "Depends")
    # Ours, what is called and not linked, and another name of libspdlog1.10.
    others = {"libgmb0", "procps", "python3", "pkg-config", "libspdlog1.10-fmt9"}
    needed = {one for one in re.findall(r"(?:^|, )([a-z0-9.+-]+)", depends) if not one.startswith("systemd")}
    for missing in sorted(needed - others - versions.keys()):
        sys.exit(f"{package}: the SBOM does not name {missing}")
    print(f"{name}: the SBOM is valid and names {len(versions)} packages")


if __name__ == "__main__":
    for deb in sys.argv[1:]:
        check(deb)
