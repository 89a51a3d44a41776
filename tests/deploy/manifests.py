"""Reads deploy/kubernetes: for the tests of the manifests and of the image."""

import pathlib

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy/kubernetes"


def load(path):
    """The resources of one file."""
    with open(path, encoding="utf-8") as file:
        return [resource for resource in yaml.safe_load_all(file) if resource]


def files():
    """Every manifest, the kustomizations left out."""
    return sorted(path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml")


def find(kind, name):
    """The one resource of this kind and name."""
    found = [
        resource
        for path in files()
        for resource in load(path)
        if (resource["kind"], resource["metadata"]["name"]) == (kind, name)
    ]
    assert len(found) == 1, "%d resources are %s/%s" % (len(found), kind, name)
    return found[0]


def pod_spec(resource):
    """The pod spec of a Deployment or Job, or None."""
    return resource.get("spec", {}).get("template", {}).get("spec")


def containers(spec):
    """Init containers and containers of a pod spec."""
    return spec.get("initContainers", []) + spec["containers"]


def container(spec, name):
    return next(each for each in containers(spec) if each["name"] == name)
