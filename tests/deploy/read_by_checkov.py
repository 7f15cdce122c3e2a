"""read_by_checkov.py CHECKOV: what checkov finds in deploy/, and that it would find more.

The Kubernetes files are read as kustomize renders them. First it is given a
container that may do anything: where it finds nothing wrong with that, nothing
it says is worth anything.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

import kustomize

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
FOLDERS = ("sidecar", "overlays/gpu", "overlays/keeper", "overlays/gpu-keeper")
# It takes some seconds, and a minute on loaded cores.
MOST_SECONDS = 300
# Of the files that are there, it does more than 100 checks each.
FEWEST_CHECKS = {"kubernetes": 100, "dockerfile": 50}


def read(checkov, folder):
    """Its reports on all files in the folder, by framework."""
    done = subprocess.run(
        [checkov, "--config-file", str(DEPLOY / "checkov.yaml"), "--directory", str(folder),
         "--output", "json"],
        capture_output=True, text=True, timeout=MOST_SECONDS)
    try:
        reports = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"checkov says no JSON:\n{done.stdout}{done.stderr}")
    return {report["check_type"]: report
            for report in (reports if isinstance(reports, list) else [reports])
            if "check_type" in report}


def findings(report):
    return [f"{check['check_id']}: {check['check_name']}: {check['resource']} in {check['file_path']}"
            for check in report["results"]["failed_checks"]]


def write(folder, name, resources):
    pathlib.Path(folder, name).write_text(yaml.safe_dump_all(resources))


def find_the_bad_one(checkov, resources):
    bad = copy.deepcopy(resources)
    for resource in bad:
        if resource["kind"] == "Deployment":
            container = resource["spec"]["template"]["spec"]["containers"][0]
            container["securityContext"] = {"privileged": True}
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "bad.yaml", bad)
        report = read(checkov, folder).get("kubernetes")
    if report is None or not any("CKV_K8S_16:" in finding for finding in findings(report)):
        sys.exit("checkov does not find a privileged container: see deploy/checkov.yaml")


def main():
    checkov = sys.argv[1]
    rendered = {name: kustomize.render(DEPLOY / "kubernetes" / name) for name in FOLDERS}
    find_the_bad_one(checkov, rendered["sidecar"])
    with tempfile.TemporaryDirectory() as folder:
        for name, resources in rendered.items():
            write(folder, name.replace("/", "-") + ".yaml", resources)
        pathlib.Path(folder, "Dockerfile").write_text((DEPLOY / "Dockerfile").read_text())
        reports = read(checkov, folder)
    wrong = []
    for framework, fewest in FEWEST_CHECKS.items():
        summary = reports.get(framework, {}).get("summary", {})
        passed, unread = summary.get("passed", 0), summary.get("parsing_errors", 0)
        print(f"checkov {summary.get('checkov_version')}: {framework}: {passed} checks passed")
        if passed < fewest or unread:
            wrong.append(f"{framework}: {passed} checks passed, {unread} files unread: "
                         f"it has not read what it should")
        wrong += findings(reports[framework]) if framework in reports else []
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
