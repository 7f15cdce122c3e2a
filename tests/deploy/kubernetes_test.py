"""deploy/kubernetes renders to files that are valid, and say what the design says."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import kubernetes_validate
import yaml

import kustomize

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
BASE = DEPLOY / "sidecar"
GPU = DEPLOY / "overlays" / "gpu"
KEPT = DEPLOY / "overlays" / "keeper"
GPU_KEPT = DEPLOY / "overlays" / "gpu-keeper"
# Native sidecars are on by default from 1.29, resource.k8s.io/v1 is in 1.34.
VERSIONS = {BASE: ["1.29", "1.33", kubernetes_validate.latest_version()],
            GPU: ["1.34", kubernetes_validate.latest_version()],
            KEPT: ["1.29", kubernetes_validate.latest_version()],
            GPU_KEPT: ["1.34", kubernetes_validate.latest_version()]}


def validate(resource, version):
    kubernetes_validate.validate(resource, version, strict=True)


def by_kind(resources, kind):
    found = [r for r in resources if r["kind"] == kind]
    assert len(found) == 1, f"{len(found)} of {kind}"
    return found[0]


def by_name(containers, name):
    [found] = [c for c in containers if c["name"] == name]
    return found


def pod(resources):
    return by_kind(resources, "Deployment")["spec"]["template"]["spec"]


def real_kustomize():
    """The command that renders, if this machine has one that is new enough."""
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        done = subprocess.run(["kubectl", "version", "--client", "--output=yaml"],
                              capture_output=True, text=True)
        if re.search(r"kustomizeVersion: v([5-9]|\d\d)", done.stdout):
            return ["kubectl", "kustomize"]
    return None


class SchemaTest(unittest.TestCase):

    def test_every_object_follows_the_published_schemas(self):
        for folder, versions in VERSIONS.items():
            for resource in kustomize.render(folder):
                for version in versions:
                    with self.subTest(folder=folder.name, kind=resource["kind"], version=version):
                        validate(resource, version)

    def test_a_misspelt_field_is_found_wherever_it_is(self):
        for place, right, wrong in ((("initContainers", 0), "restartPolicy", "restartPolcy"),
                                    (("containers", 0), "volumeMounts", "volumeMount"),
                                    (("initContainers", 0, "startupProbe"), "exec", "execute"),
                                    (("containers", 1, "volumeMounts", 0), "subPath", "subpath"),
                                    (("volumes", 0, "emptyDir"), "medium", "Medium")):
            with self.subTest(wrong=wrong):
                resources = kustomize.render(BASE)
                part = pod(resources)
                for step in place:
                    part = part[step]
                part[wrong] = part.pop(right)
                with self.assertRaises(kubernetes_validate.ValidationError):
                    validate(by_kind(resources, "Deployment"), "1.33")

    def test_a_value_of_the_wrong_type_is_found(self):
        resources = kustomize.render(BASE)
        pod(resources)["initContainers"][0]["startupProbe"]["periodSeconds"] = "1s"
        with self.assertRaises(kubernetes_validate.ValidationError):
            validate(by_kind(resources, "Deployment"), "1.33")


class RenderTest(unittest.TestCase):

    def test_it_is_what_kustomize_renders(self):
        command = real_kustomize()
        if command is None:
            self.skipTest("no kustomize 5 and no kubectl that brings it")
        for folder in VERSIONS:
            done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True)
            theirs = [r for r in yaml.safe_load_all(done.stdout) if r]
            ours = kustomize.render(folder)
            key = lambda r: (r["kind"], r["metadata"]["name"])  # noqa: E731
            self.assertEqual(sorted(ours, key=key), sorted(theirs, key=key))

    def test_what_the_renderer_does_not_know_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            copy_of = shutil.copytree(BASE, pathlib.Path(folder, "base"))
            file = copy_of / "kustomization.yaml"
            file.write_text(file.read_text() + "namePrefix: x-\n")
            with self.assertRaisesRegex(kustomize.KustomizeError, "namePrefix"):
                kustomize.render(copy_of)

    def test_other_quotas_give_the_configuration_another_name(self):
        base = by_kind(kustomize.render(BASE), "ConfigMap")
        gpu = by_kind(kustomize.render(GPU), "ConfigMap")
        self.assertNotEqual(base["metadata"]["name"], gpu["metadata"]["name"])
        self.assertEqual(pod(kustomize.render(GPU))["volumes"][-1]["configMap"]["name"],
                         gpu["metadata"]["name"])


class NamespaceTest(unittest.TestCase):

    def test_every_namespace_that_is_used_is_made(self):
        for folder in VERSIONS:
            resources = kustomize.render(folder)
            made = {r["metadata"]["name"] for r in resources if r["kind"] == "Namespace"}
            used = {r["metadata"].get("namespace") for r in resources} - {None}
            self.assertEqual(used, made, folder.name)

    def test_the_documented_commands_name_the_overlays_namespace(self):
        readme = (DEPLOY.parent / "README.md").read_text()
        [namespace] = [r["metadata"]["name"] for r in kustomize.render(GPU)
                       if r["kind"] == "Namespace"]
        self.assertIn(f"kubectl -n {namespace} exec deploy/inference", readme)


class ShapeTest(unittest.TestCase):

    def setUp(self):
        self.pods = {folder.name: pod(kustomize.render(folder)) for folder in VERSIONS}

    def each(self):
        for name, spec in self.pods.items():
            with self.subTest(name):
                yield spec

    def test_the_broker_is_a_sidecar_that_the_containers_wait_for(self):
        for spec in self.each():
            broker = by_name(spec["initContainers"], "gmbd")
            self.assertEqual(broker["restartPolicy"], "Always")
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                self.assertIn("exec", broker[probe])
            self.assertIs(broker, spec["initContainers"][-1])

    def test_a_draining_broker_is_not_ready_and_not_killed(self):
        # tests/component/health_test.cc tries what the commands then say.
        for spec in self.each():
            broker = by_name(spec["initContainers"], "gmbd")
            self.assertEqual(broker["readinessProbe"]["exec"]["command"], ["gmb", "status", "-q"])
            self.assertEqual(broker["livenessProbe"]["exec"]["command"],
                             ["gmb", "status", "--output", "json"])

    def test_each_container_sees_the_sockets_of_its_own_tenant_alone(self):
        for spec in self.each():
            seen = []
            for container in spec["containers"]:
                [mount] = [m for m in container["volumeMounts"] if m["name"] == "sockets"]
                seen.append(mount["subPath"])
                self.assertTrue(mount["readOnly"])
                self.assertFalse({m["name"] for m in container["volumeMounts"]} & {"state", "keeper"})
            self.assertEqual(seen, ["tenants/a", "tenants/b"])

    def test_the_tenants_of_the_containers_are_configured(self):
        for folder in VERSIONS:
            config_map = by_kind(kustomize.render(folder), "ConfigMap")
            tenants = {t["name"]: t for t in yaml.safe_load(config_map["data"]["gmb.yaml"])["tenants"]}
            self.assertEqual(set(tenants), {"a", "b"})
            for tenant in tenants.values():
                self.assertEqual(set(tenant), {"name", "guarantee", "limit", "weight"})

    def test_no_container_runs_as_root_or_may_become_it(self):
        for spec in self.each():
            self.assertTrue(spec["securityContext"]["runAsNonRoot"])
            for container in spec["initContainers"] + spec["containers"]:
                self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])
                self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})

    def test_with_a_gpu_every_container_claims_the_same_one(self):
        for spec in (self.pods["gpu"], self.pods["gpu-keeper"]):
            broker = by_name(spec["initContainers"], "gmbd")
            for container in [broker, *spec["containers"]]:
                self.assertEqual(container["resources"]["claims"], [{"name": "gpu"}])
            self.assertIn("--device=cuda:0", broker["args"])

    def test_the_keeper_is_there_before_the_broker_that_is_to_find_it(self):
        for spec in (self.pods["keeper"], self.pods["gpu-keeper"]):
            keeper, broker = spec["initContainers"]
            self.assertEqual(keeper["restartPolicy"], "Always")
            [socket] = [a.removeprefix("--socket=") for a in keeper["args"]]
            self.assertIn(f"--keeper={socket}", broker["args"])
            self.assertIn(socket, keeper["startupProbe"]["exec"]["command"])
            self.assertNotIn("claims", keeper["resources"])
            for container in (keeper, broker):
                [mount] = [m for m in container["volumeMounts"] if m["name"] == "keeper"]
                # The volume's own directory is root's.
                self.assertNotEqual(mount["mountPath"], str(pathlib.PurePath(socket).parent))
                self.assertTrue(socket.startswith(mount["mountPath"]))
            self.assertEqual(keeper["image"], broker["image"])
        for name in ("sidecar", "gpu"):
            self.assertEqual(len(self.pods[name]["initContainers"]), 1)


if __name__ == "__main__":
    unittest.main()
