"""Reads and renders deploy/kubernetes: for the tests of the manifests, the chart and the image."""

import functools
import pathlib
import re
import shutil
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/kubernetes"
CHART = FOLDER / "chart"


def load(path):
    """The resources of one file."""
    with open(path, encoding="utf-8") as file:
        return [resource for resource in yaml.safe_load_all(file) if resource]


def kustomizations():
    """Every folder with a kustomization, and what that says."""
    return {path.parent: load(path)[0] for path in sorted(FOLDER.rglob("kustomization.yaml"))}


def files():
    """Every file with whole resources: those that a kustomization lists, and the jobs."""
    listed = [folder / name for folder, kustomization in kustomizations().items()
              for name in kustomization.get("resources", []) if name.endswith(".yaml")]
    return sorted([*listed, *(FOLDER / "job").glob("*.yaml")])


def find(kind, name, resources=None):
    """The one resource of this kind and name: of the files, or of rendered ones."""
    if resources is None:
        resources = [resource for path in files() for resource in load(path)]
    found = [resource for resource in resources
             if (resource["kind"], resource["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, "%d resources are %s/%s" % (len(found), kind, name)
    return found[0]


def pod_template(resource):
    """The pod template of a Deployment, Job or TFJob, or None."""
    spec = resource.get("spec", {})
    return spec.get("tfReplicaSpecs", {}).get("Worker", spec).get("template")


def pod_spec(resource):
    """The pod spec of a Deployment, Job or TFJob, or None."""
    return (pod_template(resource) or {}).get("spec")


def containers(spec):
    """Init containers and containers of a pod spec."""
    return spec.get("initContainers", []) + spec["containers"]


def container(spec, name):
    return next(each for each in containers(spec) if each["name"] == name)


# Labels that controllers put on a job's pods.
JOB_NAME_LABELS = {"Job": "batch.kubernetes.io/job-name", "TFJob": "training.kubeflow.org/job-name"}


def environment(resource, of):
    """The variables of one container of a job, with the downward API's values."""
    metadata = resource["metadata"]
    labels = {**pod_template(resource)["metadata"]["labels"],
              JOB_NAME_LABELS[resource["kind"]]: metadata["name"]}
    fields = {"metadata.namespace": metadata["namespace"],
              **{"metadata.labels['%s']" % key: value for key, value in labels.items()}}
    # A label that is not there is an empty string, as in a cluster.
    return {each["name"]: each["value"] if "value" in each else
            fields.get(each["valueFrom"]["fieldRef"]["fieldPath"], "") for each in of.get("env", [])}


@functools.lru_cache(maxsize=None)
def kustomize_command():
    """What renders, or None. Debian 12's kubectl has a kustomize that knows no components' labels."""
    if shutil.which("kustomize"):
        return ("kustomize", "build")
    if shutil.which("kubectl"):
        version = subprocess.run(["kubectl", "version", "--client"], capture_output=True, text=True,
                                 check=False).stdout
        if re.search(r"^Kustomize Version: v[5-9]\.", version, re.MULTILINE):
            return ("kubectl", "kustomize")
    return None


@functools.lru_cache(maxsize=None)
def rendered(folder):
    """What would be applied of a kustomization."""
    done = subprocess.run([*kustomize_command(), folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError("%s does not render: %s" % (folder, done.stderr))
    return [resource for resource in yaml.safe_load_all(done.stdout) if resource]
