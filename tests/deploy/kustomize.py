"""Renders a kustomization as kustomize does, for the features that deploy/ uses.

No kustomize that knows native sidecars can be installed from the packages this
project builds on, so the tests bring this. It is strict: a key that it does not
know is an error, never skipped. Where the real one is installed, the tests
compare the two.
"""

import copy
import hashlib
import json
import pathlib

import yaml

KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "configMapGenerator",
         "images", "patches"}


class KustomizeError(Exception):
    pass


def render(folder):
    """The list of objects that `kubectl apply -k folder` would send."""
    resources, config_maps, namespace = load(pathlib.Path(folder))
    names = {name: f"{name}-{name_hash(data)}" for name, data in config_maps.items()}
    for name, data in config_maps.items():
        resources.append({"apiVersion": "v1", "kind": "ConfigMap",
                          "metadata": {"name": names[name]}, "data": data})
    for resource in resources:
        if namespace and resource["kind"] != "Namespace":  # it is in none
            resource["metadata"]["namespace"] = namespace
    for spec in pod_specs(resources):
        for volume in spec.get("volumes", []):
            if "configMap" in volume:
                name = volume["configMap"]["name"]
                if name not in names:
                    raise KustomizeError(f"volume {volume['name']}: no ConfigMap {name}")
                volume["configMap"]["name"] = names[name]
    return resources


def load(folder):
    """Returns (objects, {name: data} of the generated ConfigMaps, namespace)."""
    kustomization = take(yaml.safe_load((folder / "kustomization.yaml").read_text()), KNOWN,
                         str(folder))
    resources, config_maps, namespace = [], {}, kustomization.get("namespace")
    for entry in kustomization.get("resources", []):
        path = folder / entry
        if path.is_dir():
            base, base_config_maps, of_base = load(path)
            namespace = namespace or of_base
            resources += base
            config_maps.update(base_config_maps)
        else:
            resources += [r for r in yaml.safe_load_all(path.read_text()) if r]
    for entry in kustomization.get("components", []):
        add_component(resources, folder / entry)
    for entry in kustomization.get("configMapGenerator", []):
        take(entry, {"name", "behavior", "files"}, "configMapGenerator")
        if (entry["name"] in config_maps) != (entry.get("behavior") == "replace"):
            raise KustomizeError(f"configMapGenerator: {entry['name']}: behavior does not fit")
        config_maps[entry["name"]] = {
            pathlib.PurePath(f).name: (folder / f).read_text() for f in entry["files"]}
    for entry in kustomization.get("patches", []):
        patch(resources, take(entry, {"path", "target"}, "patches"), folder)
    for entry in kustomization.get("images", []):
        take(entry, {"name", "newName", "newTag"}, "images")
        for container in containers(resources):
            if container["image"].split(":")[0] == entry["name"]:
                name = entry.get("newName", entry["name"])
                container["image"] = f"{name}:{entry['newTag']}"
    return resources, config_maps, namespace


def add_component(resources, folder):
    """Of a component: patches of what the kustomization that names it has."""
    component = take(yaml.safe_load((folder / "kustomization.yaml").read_text()),
                     {"apiVersion", "kind", "patches"}, str(folder))
    if component["kind"] != "Component":
        raise KustomizeError(f"{folder}: a {component['kind']}, and no Component")
    for entry in component["patches"]:
        patch(resources, take(entry, {"path", "target"}, "patches"), folder)


def name_hash(data):
    """The suffix of a generated ConfigMap's name: it changes with its contents."""
    text = json.dumps({"data": data, "kind": "ConfigMap", "name": ""}, separators=(",", ":"),
                      sort_keys=True, ensure_ascii=False)
    for char in "<>&":  # as Go writes JSON
        text = text.replace(char, f"\\u{ord(char):04x}")
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return digest.translate(str.maketrans("013ae", "ghkmt"))


def take(mapping, known, where):
    unknown = set(mapping) - known
    if unknown:
        raise KustomizeError(f"{where}: not supported: {', '.join(sorted(unknown))}")
    return mapping


def pod_specs(resources):
    for resource in resources:
        spec = resource.get("spec", {}).get("template", {}).get("spec", {})
        if "containers" in spec:
            yield spec


def containers(resources):
    for spec in pod_specs(resources):
        yield from spec.get("initContainers", [])
        yield from spec["containers"]


def patch(resources, entry, folder):
    target = take(entry["target"], {"kind", "name"}, "patches: target")
    matching = [r for r in resources
                if r["kind"] == target["kind"] and r["metadata"]["name"] == target["name"]]
    if not matching:
        raise KustomizeError(f"{entry['path']}: no {target['kind']} {target['name']}")
    for resource in matching:
        for operation in yaml.safe_load((folder / entry["path"]).read_text()):
            apply_json_patch(resource, take(operation, {"op", "path", "value"}, entry["path"]))


def apply_json_patch(resource, operation):
    """RFC 6902, of which: add, and replace."""
    *parents, last = [part.replace("~1", "/").replace("~0", "~")
                      for part in operation["path"].strip("/").split("/")]
    place = resource
    for part in parents:
        place = place[int(part) if isinstance(place, list) else part]
    value = copy.deepcopy(operation["value"])
    if operation["op"] == "add" and isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), value)
        return
    key = int(last) if isinstance(place, list) else last
    if operation["op"] == "replace":
        place[key]  # what is replaced must be there
    elif operation["op"] != "add":
        raise KustomizeError(f"patch: not supported: {operation['op']} {operation['path']}")
    place[key] = value
