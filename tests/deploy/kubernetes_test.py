#!/usr/bin/env python3
"""Tests deploy/kubernetes without a cluster: every resource against Kubernetes' own schemas, what the
manifests say about each other and about spillwayd's flags, and the rules that we set ourselves. That
the commands in them work is tested by image_test.py."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

try:
    import kubernetes_validate
    import manifests
    import yaml
except ImportError as error:
    print("skipped: no Python module %s here: the manifests are not tested" % error.name)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROXY = ROOT / "deploy/proxy"

# gRPC probes are stable since 1.27; the newest is whatever the package has.
OLDEST = "1.27"

failures = []
passed = 0


def check(name, problem):
    """Counts one check; `problem` says what is wrong, or is empty."""
    global passed
    if problem:
        failures.append(name)
        print("FAILED  %s\n        %s" % (name, problem))
    else:
        passed += 1
        print("ok      " + name)


def schema_problem(resource, version):
    try:
        kubernetes_validate.validate(resource, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return "%s: %s" % (".".join(str(step) for step in error.path), error.message)
    return ""


def seconds(text):
    """What Kubernetes and spillwayd both write as 30s or 5m."""
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def size(text):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi|MiB|GiB)?", text).groups()
    return int(number) << {"M": 20, "G": 30, None: 0}[unit and unit[0]]


def flags(arguments):
    return dict((argument.split("=", 1) + [""])[:2] for argument in arguments)


def check_kustomization(folder):
    kustomization = manifests.load(folder / "kustomization.yaml")[0]
    # Folders apart: another kustomization says what is in them.
    listed = {name for name in kustomization.get("resources", []) if name.endswith(".yaml")}
    there = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"}
    check("%s: lists every file beside it" % folder.name,
          "" if listed == there else "differ: %s" % sorted(listed ^ there))


def check_pod(name, spec):
    problems = []
    if spec.get("automountServiceAccountToken") is not False:
        problems.append("mounts a service account's token")
    security = spec.get("securityContext", {})
    if not security.get("runAsNonRoot"):
        problems.append("may run as root")
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        problems.append("has no seccomp profile")
    volumes = {volume["name"] for volume in spec.get("volumes", [])}
    for container in manifests.containers(spec):
        context = container.get("securityContext", {})
        if context.get("allowPrivilegeEscalation") is not False:
            problems.append("%s may gain rights" % container["name"])
        if context.get("capabilities", {}).get("drop") != ["ALL"]:
            problems.append("%s keeps capabilities" % container["name"])
        if "memory" not in container.get("resources", {}).get("limits", {}):
            problems.append("%s has no memory limit" % container["name"])
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                problems.append("%s mounts %s, which is none" % (container["name"], mount["name"]))
    check("%s: passes the restricted standard, with memory limits" % name, "; ".join(problems))


def variables(container):
    return {variable["name"]: variable["value"] for variable in container.get("env", [])}


def mounts(container):
    return {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", [])}


def check_server(deployment, spillwayd):
    spec = manifests.pod_spec(deployment)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    server = manifests.container(spec, "spillwayd")
    given = flags(server["args"])
    ports = {port["name"]: port["containerPort"]
             for container in spec["containers"] for port in container["ports"]}

    known = set(re.findall(r"--[a-z-]+", subprocess.run(
        [spillwayd, "--help"], check=True, capture_output=True, text=True).stdout))
    unknown = sorted(set(given) - known)
    check("deployment: spillwayd has every flag that is given", ", ".join(unknown))
    tried = subprocess.run([spillwayd, *server["args"], "--check"], capture_output=True, text=True)
    check("deployment: spillwayd could start so", tried.stderr if tried.returncode else "")
    check("deployment: --metrics-listen is the port metrics",
          "" if given["--metrics-listen"] == "0.0.0.0:%d" % ports["metrics"] else
          given["--metrics-listen"])
    drain = seconds(given["--drain-delay"]) + seconds(given["--drain-timeout"])
    # The proxy looks once a second whether the server has ended, and then waits for one more.
    check("deployment: the grace period is longer than a drain",
          "" if spec["terminationGracePeriodSeconds"] > drain + 2 else "a drain takes %d s" % drain)
    # The server's own default follows the container's limit; a number beside it would go stale.
    fixed = sorted({"--memory-budget", "--max-inflight-bytes"} & set(given))
    check("deployment: memory follows the container's limit", ", ".join(fixed))
    writable = [container["name"] for container in spec["containers"]
                if not container["securityContext"].get("readOnlyRootFilesystem")]
    check("deployment: the root file systems are read-only", ", ".join(writable))
    probes = [server[name]["exec"]["command"] for name in ("startupProbe", "livenessProbe")]
    check("deployment: spillwayd's probes ask it on its socket",
          "" if all("--server=" + given["--listen"] in probe for probe in probes) else str(probes))
    check_proxy(spec, given, dict(line.split("=", 1) for line in tried.stdout.splitlines()), ports)

    # A selector that matches nothing fails in silence.
    selectors = {
        "deployment": deployment["spec"]["selector"]["matchLabels"],
        "budget": manifests.find("PodDisruptionBudget", "spillway")["spec"]["selector"]["matchLabels"],
        "network policy": manifests.find("NetworkPolicy", "spillway")["spec"]["podSelector"]["matchLabels"],
        "spread": spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    }
    for name in ("spillway", "spillway-replicas"):
        service = manifests.find("Service", name)["spec"]
        selectors["service " + name] = service["selector"]
        targets = {port["targetPort"] for port in service["ports"]}
        check("service %s: its targets are ports of the pod" % name,
              "" if targets <= set(ports) else str(targets))
    for name, selector in selectors.items():
        check("%s: selects the server's pods" % name,
              "" if selector and selector.items() <= labels.items() else str(selector))
    policy = manifests.find("NetworkPolicy", "spillway")["spec"]
    named = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
    check("network policy: lets in to both ports, and nothing out",
          "" if named == set(ports) and policy["egress"] == [] else str(named))
    replicas = deployment["spec"]["replicas"]
    spared = manifests.find("PodDisruptionBudget", "spillway")["spec"]["minAvailable"]
    check("budget: leaves a pod to drain", "" if replicas > spared else "nodes could never drain")


def check_proxy(spec, given, effective, ports):
    """That the proxy leads to the server, and its limits are not below the server's; `given` are the
    server's flags, `effective` all of them as they take effect."""
    server = manifests.container(spec, "spillwayd")
    proxy = manifests.container(spec, "proxy")
    environment = variables(proxy)
    socket = environment["SPILLWAY_SOCKET"]
    check("proxy: nobody else can call the server",
          "" if given["--listen"] == "unix:" + socket and "--insecure" not in given else
          given["--listen"])
    folder = str(pathlib.PurePosixPath(socket).parent)
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    shared = [mounts(container).get(folder) for container in (server, proxy)]
    check("proxy: the socket is in a volume that both mount",
          "" if shared[0] == shared[1] and "emptyDir" in volumes.get(shared[0], {}) else str(shared))
    check("proxy: it binds the port grpc",
          "" if environment["SPILLWAY_BIND"] == "0.0.0.0:%d" % ports["grpc"] else
          environment["SPILLWAY_BIND"])
    readiness = proxy["readinessProbe"]["grpc"]
    check("proxy: readiness is the health of the service behind it",
          "" if readiness == {"port": ports["grpc"], "service": "spillway.v1.RewriteService"} else
          str(readiness))
    check("proxy: it waits for the server's end before its own",
          "" if '-S "$SPILLWAY_SOCKET"' in proxy["lifecycle"]["preStop"]["exec"]["command"][-1] else
          "it does not")

    config = pathlib.PurePosixPath(proxy["command"][-1])
    volume = volumes[mounts(proxy)[str(config.parent)]]
    generator = manifests.load(PROXY / "kustomization.yaml")[0]["configMapGenerator"]
    check("proxy: its configuration is deploy/proxy's",
          "" if generator == [{"name": volume["configMap"]["name"], "files": [config.name]}] else
          str(generator))
    text = (PROXY / config.name).read_text()
    timeouts = dict(re.findall(r"^ *timeout (client|server) (\w+)$", text, re.MULTILINE))
    longest = seconds(effective["--max-request-time"])
    check("proxy: its timeouts are above --max-request-time",
          "" if len(timeouts) == 2 and all(seconds(text) > longest for text in timeouts.values()) else
          "%s, not above %d s" % (timeouts, longest))
    if shutil.which("haproxy"):
        tried = subprocess.run(["haproxy", "-c", "-f", PROXY / config.name], capture_output=True,
                               env={**os.environ, **environment}, text=True, check=False)
        check("proxy: HAProxy takes its configuration", tried.stderr if tried.returncode else "")
    if shutil.which("kubectl"):
        check_rendered(config.name, text)


def check_rendered(name, text):
    """What would be applied, where there is kubectl."""
    rendered = list(yaml.safe_load_all(subprocess.run(
        ["kubectl", "kustomize", manifests.FOLDER / "base"], check=True, capture_output=True,
        text=True).stdout))
    maps = [each for each in rendered if each["kind"] == "ConfigMap"]
    pod = manifests.pod_spec(next(each for each in rendered if each["kind"] == "Deployment"))
    mounted = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    check("rendered: the pods mount the proxy's configuration",
          "" if [each["metadata"]["name"] for each in maps] == mounted and
          maps[0]["data"] == {name: text} and
          maps[0]["metadata"]["namespace"] == "spillway" else str(mounted))


def check_job(job):
    spec = manifests.pod_spec(job)
    rewrite = manifests.container(spec, "rewrite")
    train = manifests.container(spec, "train")
    service = manifests.find("Service", "spillway")
    target = flags(rewrite["command"])["--server"]
    expected = "%s.%s:%d" % (service["metadata"]["name"], "spillway",
                             service["spec"]["ports"][0]["port"])
    check("job: asks the service", "" if target == expected else "%s, not %s" % (target, expected))
    graph = variables(train)["SPILLWAY_GRAPH"]
    check("job: the trainer reads what the init container writes",
          "" if (' "$SPILLWAY_GRAPH" %s ' % graph) in rewrite["command"][-1] else graph)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spillwayd", default=ROOT / "build/bin/spillwayd", type=pathlib.Path)
    arguments = parser.parse_args()
    newest = kubernetes_validate.latest_version()
    for path in manifests.files():
        for resource in manifests.load(path):
            name = "%s/%s" % (resource["kind"], resource["metadata"]["name"])
            for version in (OLDEST, newest):
                check("%s: valid in Kubernetes %s" % (name, version),
                      schema_problem(resource, version))
            if manifests.pod_spec(resource):
                check_pod(name, manifests.pod_spec(resource))
    for kustomization in manifests.FOLDER.rglob("kustomization.yaml"):
        check_kustomization(kustomization.parent)
    check_server(manifests.find("Deployment", "spillway"), arguments.spillwayd)
    check_job(manifests.find("Job", "resnet50"))
    print("\n%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
