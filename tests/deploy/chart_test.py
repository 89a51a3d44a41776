#!/usr/bin/env python3
"""Tests the Helm chart, deploy/kubernetes/chart, without a cluster: it renders the same as
kustomize of the base, of each overlay and of all components together, and values that contradict
each other are refused with one sentence. Needs helm, and kustomize or a kubectl that has it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import checks
from checks import check

try:
    import manifests
    import yaml
except ImportError as error:
    print("skipped: no Python module %s here: the chart is not tested" % error.name)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

CHART = manifests.CHART
RELEASE = "spillway"

TLS = {"tls": {"enabled": True, "secret": "spillway-tls"}}
TLS_CLIENTS = {"tls": {**TLS["tls"], "clientCaSecret": "spillway-client-ca"}}
CERT_MANAGER = {"tls": {**TLS["tls"], "issuer": {"name": "spillway"}}}
MONITORING = {"monitoring": {"enabled": True}}
ADMISSION = {"autoscaling": {"enabled": True, "admissionPercent": 70}}
CLAIM = {"journal": {"enabled": True, "claim": "spillway-journal"}}

# The values for which the chart is an overlay.
OVERLAYS = {
    "tls": TLS,
    "tls-clients": TLS_CLIENTS,
    "cert-manager": CERT_MANAGER,
    "monitoring": MONITORING,
    "autoscaling": {"autoscaling": {"enabled": True}},
    "autoscaling-admission": {**MONITORING, **ADMISSION},
    "journal": {"journal": {"enabled": True}},
    "journal-claim": CLAIM,
}
ALL = {"tls": {**TLS_CLIENTS["tls"], **CERT_MANAGER["tls"]}, **MONITORING, **ADMISSION, **CLAIM}
ALL_COMPONENTS = ("tls", "tls-clients", "cert-manager", "monitoring", "autoscaling-admission", "journal",
                  "journal-claim")

# Allowed differences: labels that Helm gives to a release, also in selectors; how a change of the
# proxy's configuration rolls the pods out; and the Namespace, which Helm does not own.
HELM_LABELS = {"app.kubernetes.io/instance", "app.kubernetes.io/version",
               "app.kubernetes.io/managed-by", "helm.sh/chart"}
CHECKSUM = "checksum/proxy"
HASHED = re.compile(r"^spillway-proxy-[0-9a-z]{10}$")


# Values that contradict each other or the schema, and the message. The second one of each is next
# to it, and sound.
REFUSED = [
    ({"autoscaling": {"minReplicas": 5, "maxReplicas": 4}},
     {"autoscaling": {"minReplicas": 5, "maxReplicas": 5}},
     "autoscaling.minReplicas is 5, above autoscaling.maxReplicas, which is 4."),
    ({"replicas": 3, "autoscaling": {"enabled": True}}, {"replicas": 3},
     "replicas is 3, but the autoscaler sets their number: leave it out, or"
     " autoscaling.enabled."),
    ({"autoscaling": {"admissionPercent": 70}}, ADMISSION,
     "autoscaling.admissionPercent is 70, but there is no autoscaler: set autoscaling.enabled."),
    ({"replicas": 2, "disruptionBudget": {"minAvailable": 2}},
     {"replicas": 3, "disruptionBudget": {"minAvailable": 2}},
     "disruptionBudget.minAvailable is 2, and there may be 2 of the pods: no node could drain. Give at"
     " most 1."),
    ({"replicas": 1}, {"replicas": 1, "disruptionBudget": {"minAvailable": 0}},
     "disruptionBudget.minAvailable is 1, and there may be 1 of the pods: no node could drain. Give at"
     " most 0."),
    ({"autoscaling": {"enabled": True, "minReplicas": 1}},
     {"autoscaling": {"enabled": True, "minReplicas": 2}},
     "disruptionBudget.minAvailable is 1, and there may be 1 of the pods: no node could drain. Give at"
     " most 0."),
    ({"tls": {"enabled": True}}, TLS,
     "tls.enabled takes a certificate: name its Secret in tls.secret."),
    ({"tls": {"secret": "a"}}, {"tls": {"secret": ""}},
     "tls.secret names the Secret a, but the port is plaintext: set tls.enabled."),
    ({"tls": {"clientCaSecret": "b"}}, TLS_CLIENTS,
     "tls.clientCaSecret names the Secret b, but the port is plaintext: set tls.enabled."),
    ({"tls": {"issuer": {"name": "c"}}}, CERT_MANAGER,
     "tls.issuer.name is c, but the port is plaintext: set tls.enabled."),
    ({"journal": {"fileMiB": 16}}, {"journal": {"enabled": True, "fileMiB": 16}},
     "journal.fileMiB is 16, but no journal is written: set journal.enabled."),
    ({"journal": {"files": 4}}, {"journal": {"enabled": True, "files": 4}},
     "journal.files is 4, but no journal is written: set journal.enabled."),
    ({"journal": {"claim": "c"}}, CLAIM,
     "journal.claim is c, but no journal is written: set journal.enabled."),
    ({"journal": {"enabled": True, "fileMiB": 100, "files": 10, "volumeMiB": 999}},
     {"journal": {"enabled": True, "fileMiB": 100, "files": 10, "volumeMiB": 1000}},
     "journal.volumeMiB is 999, and 10 files of 100 MiB may take 1000: the pod would be evicted."),
    ({"journal": {"enabled": True, "volumeMiB": 511}}, {"journal": {"enabled": True, "volumeMiB": 512}},
     "journal.volumeMiB is 511, and 8 files of 64 MiB may take 512: the pod would be evicted."),
    ({"extraArgs": ["--workers=8", "--drain-delay=9s"]}, {"extraArgs": ["--workers=8"]},
     "extraArgs has --drain-delay, which the chart sets: see drain.delaySeconds."),
    ({"extraArgs": ["--memory-budget=1GiB"]}, {"extraArgs": ["--cache-bytes=0"]},
     "extraArgs has --memory-budget, which the chart sets: it follows"
     " resources.server.limits.memory."),
]

# The schema's messages are Helm's.
AGAINST_THE_SCHEMA = [
    ({"replica": 3}, {"replicas": 3}, "Additional property replica is not allowed"),
    ({"tls": {"cert": "a"}}, TLS, "tls: Additional property cert is not allowed"),
    ({"tls": {**TLS["tls"], "issuer": {"kind": "CA", "name": "a"}}}, CERT_MANAGER,
     "tls.issuer.kind: tls.issuer.kind must be one of the following"),
    ({"replicas": 0}, {"replicas": 3}, "replicas: Must be greater than or equal to 1"),
    ({"replicas": "3"}, {"replicas": 3}, "replicas: Invalid type"),
    ({"resources": {"server": {"limits": {"memory": None}}}},
     {"resources": {"server": {"limits": {"memory": "8Gi"}}}},
     "resources.server.limits: memory is required"),
    ({"autoscaling": {"admissionPercent": 100}}, ADMISSION,
     "autoscaling.admissionPercent: Must be less than or equal to 99"),
    ({"extraArgs": ["workers=8"]}, {"extraArgs": ["--workers=8"]},
     "extraArgs.0: Does not match pattern"),
    ({"networkPolicy": {"clients": {"spillway-clients": None}}},
     {"networkPolicy": {"clients": {"team": "vision"}}},
     "networkPolicy.clients: Must have at least 1 properties"),
    ({"monitoring": {"interval": "15"}}, {"monitoring": {"interval": "30s"}},
     "monitoring.interval: Does not match pattern"),
]


def helm(command, *arguments, values=None):
    """Runs helm as if for the oldest Kubernetes that the chart is for."""
    return subprocess.run(
        ["helm", command, *arguments, *(["--values", "-"] if values is not None else [])],
        input=yaml.safe_dump(values) if values is not None else None, capture_output=True, text=True,
        check=False)


def template(values, chart=CHART):
    return helm("template", RELEASE, chart, "--namespace=spillway", "--kube-version=1.27.0",
                values=values)


def rendered(values, chart=CHART):
    done = template(values, chart)
    if done.returncode != 0:
        raise ValueError("the chart does not render: " + done.stderr)
    return [resource for resource in yaml.safe_load_all(done.stdout) if resource]


def normal(value):
    """`value` without parts that may differ, and lists by name if order means nothing."""
    if isinstance(value, dict):
        made = {key: normal(each) for key, each in value.items()
                if key not in HELM_LABELS and key != CHECKSUM}
        if made.get("annotations") == {}:
            del made["annotations"]
        return made
    if isinstance(value, list):
        made = [normal(each) for each in value]
        for key in ("mountPath", "name"):
            if all(isinstance(each, dict) and key in each for each in made):
                return sorted(made, key=lambda each: each[key])
        return made
    if isinstance(value, str) and HASHED.match(value):
        return "spillway-proxy"
    return value


def by_name(resources):
    return {"%s/%s" % (resource["kind"], normal(resource["metadata"]["name"])): normal(resource)
            for resource in resources if resource["kind"] != "Namespace"}


def difference(one, other, path=""):
    """Where two values differ first, or nothing."""
    if type(one) is not type(other):
        return "%s: %r, not %r" % (path, one, other)
    if isinstance(one, dict):
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                return "%s.%s: only %s has it" % (path, key, "the chart" if key in one else "kustomize")
            found = difference(one[key], other[key], "%s.%s" % (path, key))
            if found:
                return found
        return ""
    if isinstance(one, list) and len(one) == len(other):
        return next(filter(None, (difference(a, b, "%s[%d]" % (path, index))
                                  for index, (a, b) in enumerate(zip(one, other)))), "")
    return "" if one == other else "%s: %r, not %r" % (path, one, other)


def check_equal(name, values, folder):
    found = difference(by_name(rendered(values)), by_name(manifests.rendered(folder)))
    check("%s: the chart is what kustomize renders" % name, not found, found)


def leaves(value, path=()):
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    if not items and not isinstance(value, (dict, list)):
        yield path
    for key, each in items:
        yield from leaves(each, (*path, key))


def check_comparison():
    """That only parts that may differ are overlooked: each leaf is changed once."""
    resources = rendered(ALL)
    overlooked = set()
    for resource in resources:
        before = normal(resource)
        for path in leaves(resource):
            at = resource
            for key in path[:-1]:
                at = at[key]
            kept, at[path[-1]] = at[path[-1]], "another"
            if normal(resource) == before:
                overlooked.add(path[-1])
            at[path[-1]] = kept
    check("the comparison overlooks what may differ, and nothing else",
          overlooked == {*HELM_LABELS, CHECKSUM}, overlooked)


def check_all_components(folder):
    """All at once, as a kustomization of one's own combines them."""
    def relative(path):
        return os.path.relpath(path, folder)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [relative(manifests.FOLDER / "base")],
        "components": [relative(manifests.FOLDER / "components" / name) for name in ALL_COMPONENTS]}))
    check_equal("all components", ALL, folder)


def check_example(folder):
    """The kustomization that deploy/kubernetes/README.md shows, as it stands there."""
    [text] = re.findall(r"^```\n(resources:.*?)^```$", (manifests.FOLDER / "README.md").read_text(),
                        re.MULTILINE | re.DOTALL)
    (folder / "kustomization.yaml").write_text(
        text.replace("spillway/deploy", os.path.relpath(manifests.ROOT / "deploy", folder)))
    image = {"repository": "registry.you.example/spillway"}
    found = difference(by_name(rendered({**TLS, **MONITORING, "image": image})),
                       by_name(manifests.rendered(folder)))
    check("the README's kustomization is the chart with the same values", not found, found)


def check_refusals():
    said = []
    for values, sound, sentence in REFUSED:
        done = template(values)
        errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
        said += errors
        check("refused: " + sentence,
              done.returncode != 0 and len(errors) == 1 and errors[0].endswith(": " + sentence),
              done.stderr or "it is not")
        done = template(sound)
        check("    and not %s" % json.dumps(sound), done.returncode == 0, done.stderr)
    for values, sound, words in AGAINST_THE_SCHEMA:
        done = template(values)
        check("against the schema: " + words, done.returncode != 0 and "- %s" % words in
              done.stderr.replace("(root): ", ""), done.stderr or "it is not")
        done = template(sound)
        check("    and not %s" % json.dumps(sound), done.returncode == 0, done.stderr)
    # Every refusal of the chart has a case above.
    text = (CHART / "templates/_refusals.tpl").read_text()
    sentences = re.findall(r'fail (?:\(printf )?"([^"]+)"', text)
    untested = [sentence for sentence in sentences
                if not any(re.search(re.sub(r"%[dsv]", ".+", re.sub(r"([.?()])", r"\\\1", sentence)) + "$",
                                     error) for error in said)]
    check("every refusal is tested", len(sentences) == text.count("fail ") and not untested,
          untested or text.count("fail "))


def check_versions():
    chart = manifests.load(CHART / "Chart.yaml")[0]
    [project] = re.findall(r"^project\(spillway VERSION (\S+)",
                           (manifests.ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    [image] = manifests.load(manifests.FOLDER / "base/kustomization.yaml")[0]["images"]
    check("it is of Spillway's version, and so is the base",
          chart["appVersion"] == project == image["newTag"], (chart["appVersion"], image["newTag"]))


def check_package(folder):
    """Packed, it needs nothing of the source: links are files then."""
    packed = helm("package", CHART, "--destination", folder)
    archives = list(folder.glob("*.tgz"))
    check("it can be packed", packed.returncode == 0 and len(archives) == 1, packed.stderr)
    if archives:
        found = difference(rendered(ALL, archives[0]), rendered(ALL))
        check("packed, it renders the same", not found, found)


def check_names():
    """Two releases in a namespace do not meet, and a name of its own leads to the right places."""
    done = helm("template", "blue", CHART, "--namespace=ml", "--kube-version=1.27.0",
                values={**ALL, "networkPolicy": {"enabled": False}})
    resources = [resource for resource in yaml.safe_load_all(done.stdout) if resource]
    names = {resource["kind"]: resource["metadata"]["name"] for resource in resources}
    check("another release has names of its own",
          all(resource["metadata"]["name"].startswith("blue-spillway") and
              resource["metadata"]["namespace"] == "ml" for resource in resources), names)
    check("without a policy there is none", "NetworkPolicy" not in names, names)
    deployment = next(each for each in resources if each["kind"] == "Deployment")
    pod = manifests.pod_spec(deployment)
    mounted = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    scaled = next(each for each in resources
                  if each["kind"] == "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"]
    check("its parts find each other", mounted == [names["ConfigMap"]] and
          scaled == names["Deployment"], (mounted, scaled))
    certificate = next(each for each in resources if each["kind"] == "Certificate")["spec"]
    check("its certificate is for its services", certificate["dnsNames"] == [
        each["metadata"]["name"] + ".ml" for each in resources if each["kind"] == "Service"],
        certificate["dnsNames"])
    labels = manifests.pod_template(deployment)["metadata"]["labels"]
    selectors = [each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
                 for each in resources if each["kind"] in ("Service", "Deployment",
                                                           "PodDisruptionBudget")]
    check("it selects its own pods", all(
        selector.items() <= labels.items() and selector["app.kubernetes.io/instance"] == "blue"
        for selector in selectors), selectors)


def main():
    if not shutil.which("helm") or not manifests.kustomize_command():
        print("skipped: no helm, or no kustomize, here: the chart is not tested")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    linted = helm("lint", "--strict", CHART)
    check("helm lint has nothing to say", linted.returncode == 0, linted.stdout)
    check_equal("base", {}, manifests.FOLDER / "base")
    there = {path.name for path in (manifests.FOLDER / "overlays").iterdir()}
    check("every overlay has its values here", there == set(OVERLAYS), there ^ set(OVERLAYS))
    for name, values in OVERLAYS.items():
        check_equal("overlay " + name, values, manifests.FOLDER / "overlays" / name)
    with tempfile.TemporaryDirectory(dir=os.path.realpath(tempfile.gettempdir())) as name:
        folders = [pathlib.Path(name) / part for part in ("all", "example", "package")]
        for folder, test in zip(folders, (check_all_components, check_example, check_package)):
            folder.mkdir()
            test(folder)
    check_comparison()
    check_names()
    check_refusals()
    check_versions()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
