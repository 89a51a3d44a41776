"""Schemas of resources that are not Kubernetes' own, from the modules of those who define them. A field
that a schema does not have is a mistake."""

import json
import shutil
import subprocess
import pathlib

import jsonschema
import yaml

# The module, and the folder in it with the definitions.
SOURCES = {
    "github.com/prometheus-operator/prometheus-operator@v0.68.0": "example/prometheus-operator-crd",
    "github.com/kubeflow/training-operator@v1.7.0": "manifests/base/crds",
    "github.com/cert-manager/cert-manager@v1.13.3": "deploy/crds",
}
KINDS = ("ServiceMonitor", "PrometheusRule", "TFJob", "Certificate")


def strict(schema):
    """`schema`, and nothing that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    # `properties` may be a field's name, too: then it is no schema, and has no type.
    if (schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and
            "additionalProperties" not in schema and
            not schema.get("x-kubernetes-preserve-unknown-fields")):
        made["additionalProperties"] = False
    return made


class Unavailable(Exception):
    """The definitions cannot be had here; the text says why."""


def module(name):
    """The folder of a module of Go, fetched once."""
    done = subprocess.run(["go", "mod", "download", "-json", name], capture_output=True, text=True,
                          check=False, timeout=300)
    try:
        return pathlib.Path(json.loads(done.stdout)["Dir"])
    except (ValueError, KeyError):
        raise Unavailable("Go cannot get " + name) from None


def validators():
    """By apiVersion and kind."""
    if not shutil.which("go"):
        raise Unavailable("no Go here")
    made = {}
    for name, folder in SOURCES.items():
        for path in (module(name) / folder).glob("*.yaml"):
            text = path.read_text()
            # Parsing all of them takes long.
            if not any("\n    kind: %s\n" % kind in text for kind in KINDS):
                continue
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            definition = yaml.load(text, Loader=loader)["spec"]
            for version in definition["versions"]:
                key = ("%s/%s" % (definition["group"], version["name"]), definition["names"]["kind"])
                made[key] = jsonschema.Draft7Validator(strict(version["schema"]["openAPIV3Schema"]))
    return made


def problem(validator, resource):
    """The problem, or nothing."""
    found = jsonschema.exceptions.best_match(validator.iter_errors(resource))
    if found is None:
        return ""
    return "%s: %s" % (".".join(str(step) for step in found.absolute_path), found.message[:300])
