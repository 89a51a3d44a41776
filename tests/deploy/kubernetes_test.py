#!/usr/bin/env python3
"""Tests deploy/kubernetes without a cluster: every resource, as it stands and as each overlay
renders it, against Kubernetes' own schemas and those of the operators, the manifests' statements
about each other and about spillwayd's flags, and the rules that we set ourselves. chart_test.py
tests the chart; image_test.py tests that the commands work. Renders with kustomize, or a kubectl
that has it; takes the operators' schemas from their modules, with Go."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import checks

try:
    import crds
    import kubernetes_validate
    import manifests
    import yaml
except ImportError as error:
    print("skipped: no Python module %s here: the manifests are not tested" % error.name)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROXY = ROOT / "deploy/proxy"

# gRPC probes are stable since 1.27; the newest is the package's newest.
OLDEST = "1.27"

def check(name, problem):
    """Counts one check; `problem` is empty if it passed."""
    checks.check(name, not problem, problem)


def schema_problem(resource, version):
    try:
        kubernetes_validate.validate(resource, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return "%s: %s" % (".".join(str(step) for step in error.path), error.message)
    return ""


def check_schemas(name, resources, operators):
    """`operators`: their validators, or None if they cannot be had."""
    for version in (OLDEST, kubernetes_validate.latest_version()):
        problems = []
        for resource in resources:
            if is_kubernetes(resource):
                problems.append(schema_problem(resource, version))
            template = manifests.pod_template(resource)
            if resource["kind"] == "TFJob":
                problems.append(schema_problem({"apiVersion": "v1", "kind": "Pod", **template}, version))
        check("%s: valid in Kubernetes %s" % (name, version), "; ".join(filter(None, problems)))
    if operators:
        for resource in resources:
            if not is_kubernetes(resource):
                validator = operators[resource["apiVersion"], resource["kind"]]
                check("%s: %s is valid for its operator" % (name, resource["kind"]),
                      crds.problem(validator, resource))


def is_kubernetes(resource):
    group = resource["apiVersion"].rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def seconds(text):
    """What Kubernetes and spillwayd both write as 30s or 5m."""
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def size(text):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi|MiB|GiB)?", text).groups()
    return int(number) << {"M": 20, "G": 30, None: 0}[unit and unit[0]]


def flags(arguments):
    return dict((argument.split("=", 1) + [""])[:2] for argument in arguments)


def check_kustomization(folder, kustomization):
    # Except folders: another kustomization lists their files.
    named = [*kustomization.get("resources", []),
             *(patch.get("path", "") for patch in kustomization.get("patches", []))]
    listed = {name for name in named if name.endswith(".yaml")}
    there = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml",
                                                             "prometheus-adapter-values.yaml"}
    check("%s: names every file beside it" % folder.relative_to(manifests.FOLDER),
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
    problems += ["%s may fill the node's disk" % volume["name"] for volume in spec.get("volumes", [])
                 if "emptyDir" in volume and not (volume["emptyDir"] or {}).get("sizeLimit")]
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
    check("%s: passes the restricted standard, with limits of memory and disk" % name, "; ".join(problems))


def variables(container):
    return {variable["name"]: variable.get("value") for variable in container.get("env", [])}


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
    fixed = sorted({"--memory-budget", "--max-inflight-bytes", "--workers"} & set(given))
    check("deployment: memory and workers follow the container's limits", ", ".join(fixed))
    limits = server["resources"]["limits"]
    check("deployment: the workers are not as many as the node's cores",
          "" if "cpu" in limits else "spillwayd has no CPU limit")
    writable = [container["name"] for container in spec["containers"]
                if not container["securityContext"].get("readOnlyRootFilesystem")]
    check("deployment: the root file systems are read-only", ", ".join(writable))
    probes = [server[name]["exec"]["command"] for name in ("startupProbe", "livenessProbe")]
    check("deployment: spillwayd's probes ask it on its socket",
          "" if all("--server=" + given["--listen"] in probe for probe in probes) else str(probes))
    check_proxy(spec, given, dict(line.split("=", 1) for line in tried.stdout.splitlines()), ports)

    # A selector that matches nothing fails silently.
    selectors = {
        "deployment": deployment["spec"]["selector"]["matchLabels"],
        "budget": manifests.find("PodDisruptionBudget", "spillway")["spec"]["selector"]["matchLabels"],
        "network policy": manifests.find("NetworkPolicy", "spillway")["spec"]["podSelector"]["matchLabels"],
        **{"spread over " + spread["topologyKey"]: spread["labelSelector"]["matchLabels"]
           for spread in spec["topologySpreadConstraints"]},
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
    check("deployment: a new pod serves before an old one goes",
          "" if deployment["spec"]["strategy"] == {
              "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}} else
          str(deployment["spec"]["strategy"]))
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
    if manifests.kustomize_command():
        check_rendered(config.name, text)


def check_rendered(name, text):
    """The resources that would be applied, from kustomize."""
    rendered = manifests.rendered(manifests.FOLDER / "base")
    maps = [each for each in rendered if each["kind"] == "ConfigMap"]
    pod = manifests.pod_spec(manifests.find("Deployment", "spillway", rendered))
    mounted = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    check("rendered: the pods mount the proxy's configuration",
          "" if [each["metadata"]["name"] for each in maps] == mounted and
          maps[0]["data"] == {name: text} and
          maps[0]["metadata"]["namespace"] == "spillway" else str(mounted))


def check_job(job):
    name = job["metadata"]["name"]
    template = manifests.pod_template(job)
    spec = template["spec"]
    rewrite = manifests.container(spec, "rewrite")
    train = spec["containers"][0]
    service = manifests.find("Service", "spillway")
    target = flags(rewrite["command"])["--server"]
    expected = "%s.%s:%d" % (service["metadata"]["name"], "spillway",
                             service["spec"]["ports"][0]["port"])
    check("%s: asks the service" % name,
          "" if target == expected else "%s, not %s" % (target, expected))
    graph = variables(train)["SPILLWAY_GRAPH"]
    check("%s: the trainer reads what the init container writes" % name,
          "" if (' "$SPILLWAY_GRAPH" %s ' % graph) in rewrite["command"][-1] else graph)
    asks = manifests.environment(job, rewrite)
    check("%s: says who asks" % name,
          "" if asks == {"SPILLWAY_JOB": name, "SPILLWAY_QUEUE": job["metadata"]["namespace"],
                         "SPILLWAY_USER": "alice", "SPILLWAY_MODEL": "resnet50"} else str(asks))


def check_overlay(name, operators, spillwayd):
    """An overlay as it would be applied."""
    resources = manifests.rendered(manifests.FOLDER / "overlays" / name)
    label = "overlay " + name
    check_schemas(label, resources, operators)
    deployment = manifests.find("Deployment", "spillway", resources)
    spec = manifests.pod_spec(deployment)
    check_pod(label, spec)
    homeless = [resource["kind"] for resource in resources
                if resource["kind"] != "Namespace" and
                resource["metadata"].get("namespace") != "spillway"]
    check(label + ": all of it is in the namespace spillway", ", ".join(homeless))
    ports = {port["name"]: port["containerPort"]
             for container in spec["containers"] for port in container["ports"]}
    spared = manifests.find("PodDisruptionBudget", "spillway", resources)["spec"]["minAvailable"]
    kinds = {resource["kind"]: resource for resource in resources}
    if "HorizontalPodAutoscaler" in kinds:
        scaler = kinds["HorizontalPodAutoscaler"]["spec"]
        check(label + ": only the autoscaler says how many replicas there are",
              "" if "replicas" not in deployment["spec"] and scaler["scaleTargetRef"] == {
                  "apiVersion": deployment["apiVersion"], "kind": "Deployment", "name": "spillway"}
              else str(scaler["scaleTargetRef"]))
        check(label + ": the budget leaves a pod to drain",
              "" if spared < scaler["minReplicas"] <= scaler["maxReplicas"] else str(scaler))
        cpu = scaler["metrics"][0]["containerResource"]
        check(label + ": the container whose CPU counts requests some",
              "" if "cpu" in manifests.container(spec, cpu["container"])["resources"]["requests"]
              else str(cpu))
        check_admission(label, scaler["metrics"][1:])
    else:
        check(label + ": the budget leaves a pod to drain",
              "" if spared < deployment["spec"]["replicas"] else str(spared))
    if "ServiceMonitor" in kinds:
        check_monitoring(label, kinds, resources)
    proxy = manifests.container(spec, "proxy")
    if "SPILLWAY_CERT" in variables(proxy):
        check_tls(label, spec, proxy, ports)
    if "Certificate" in kinds:
        check_certificate(label, deployment, kinds["Certificate"]["spec"], resources)
    arguments = manifests.container(spec, "spillwayd")["args"]
    if "--journal" in flags(arguments):
        check_journal(label, spec, arguments, spillwayd)


def check_monitoring(label, kinds, resources):
    monitor = kinds["ServiceMonitor"]["spec"]
    services = [resource for resource in resources if resource["kind"] == "Service" and
                monitor["selector"]["matchLabels"].items() <= resource["metadata"]["labels"].items()]
    [endpoint] = monitor["endpoints"]
    scraped = [service for service in services
               if endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}]
    check(label + ": one service has the port that is scraped", "" if len(scraped) == 1 else
          str([service["metadata"]["name"] for service in scraped]))
    prometheus = manifests.load(ROOT / "deploy/prometheus/prometheus.yml")[0]
    jobs = {service["metadata"]["labels"][monitor["jobLabel"]] for service in scraped}
    check(label + ": the job's name is the one of the alerts",
          "" if jobs == {prometheus["scrape_configs"][0]["job_name"]} else str(jobs))
    check(label + ": it is scraped as often as the alerts expect",
          "" if endpoint["interval"] == prometheus["global"]["scrape_interval"] else
          endpoint["interval"])
    # The file stands for itself: kustomize reads none from outside, and none that is not a resource.
    folder = manifests.FOLDER / "components/monitoring"
    made = subprocess.run([folder / "make_rule.sh", "--print"], check=True, capture_output=True,
                          text=True).stdout
    check(label + ": its alerts are those of deploy/prometheus",
          "" if made == (folder / "prometheus-rule.yaml").read_text() and
          kinds["PrometheusRule"]["spec"] ==
          manifests.load(ROOT / "deploy/prometheus/spillway.rules.yml")[0] else
          "run deploy/kubernetes/components/monitoring/make_rule.sh")
    check(label + ": no annotation asks for a second scrape",
          str(manifests.pod_template(kinds["Deployment"])["metadata"].get("annotations", "")))


def check_admission(label, metrics):
    """The metric that prometheus-adapter makes for the autoscaler, by promtool."""
    if not metrics:
        return
    [rule] = manifests.load(manifests.FOLDER / "components/autoscaling-admission/"
                            "prometheus-adapter-values.yaml")[0]["rules"]["custom"]
    check(label + ": prometheus-adapter gives the metric",
          "" if [metric["pods"]["metric"]["name"] for metric in metrics] == [rule["name"]["as"]] else
          str(metrics))
    served = "".join(path.read_text() for path in (ROOT / "server").glob("*.cc"))
    asked = set(re.findall(r"spillway_memory_bytes\w*", rule["metricsQuery"]))
    check(label + ": the server has what the metric is made of",
          ", ".join(name for name in asked if '"%s"' % name not in served))
    promtool = shutil.which("promtool") or shutil.which(
        "promtool", path=str(ROOT / "build/tools/bin"))
    if not promtool:
        checks.skip("no promtool here: the adapter's query is not tested")
        return
    # As the adapter fills it in for the pods of an autoscaler.
    query = rule["metricsQuery"].replace("<<.GroupBy>>", "pod").replace(
        "<<.LabelMatchers>>", 'namespace="spillway",pod=~"a|b"')
    series = [("spillway_memory_bytes", "a", "0 0 8 8 8"), ("spillway_memory_bytes", "b", "2 2 2 2 2"),
              ("spillway_memory_bytes", "c", "9 9 9 9 9"),
              *(("spillway_memory_bytes_limit", pod, "10 10 10 10 10") for pod in "abc")]
    test = {"evaluation_interval": "30s", "rule_files": [], "tests": [{
        "interval": "30s",
        "input_series": [{"series": '%s{namespace="spillway",pod="%s"}' % (name, pod), "values": values}
                         for name, pod, values in series],
        # Two minutes of a: 0, 8, 8 and 8.
        "promql_expr_test": [{"expr": query, "eval_time": "119s", "exp_samples": [
            {"labels": '{pod="a"}', "value": 0.4}, {"labels": '{pod="b"}', "value": 0.2}]}]}]}
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        yaml.safe_dump(test, file)
        file.flush()
        done = subprocess.run([promtool, "test", "rules", file.name], capture_output=True, text=True)
    check(label + ": Prometheus answers the adapter's query", "" if done.returncode == 0 else
          done.stdout + done.stderr)


def check_tls(label, spec, proxy, ports):
    """HAProxy takes a certificate as the Secret mounts it, and the probe works without TLS."""
    environment = variables(proxy)
    volumes = {volume["name"]: volume.get("secret") for volume in spec["volumes"]}
    probe = flags(proxy["readinessProbe"]["exec"]["command"])
    check(label + ": the probe asks the server on its socket",
          "" if probe["--server"] == "unix:" + environment["SPILLWAY_SOCKET"] and
          probe["--service"] == "spillway.v1.RewriteService" and
          "grpc" not in proxy["readinessProbe"] else str(probe))
    if not shutil.which("haproxy") or not shutil.which("openssl"):
        checks.skip("no HAProxy or no openssl here: its certificate is not tested")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=spillway", "-keyout",
                        folder / "tls.key", "-out", folder / "tls.crt"], check=True,
                       capture_output=True)
        secret = {"tls.crt": folder / "tls.crt", "tls.key": folder / "tls.key",
                  "ca.crt": folder / "tls.crt"}
        for path, volume in mounts(proxy).items():
            for item in (volumes[volume] or {}).get("items", []):
                inside = folder / path.lstrip("/") / item["path"]
                inside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(secret[item["key"]], inside)
        environment.update({key: str(folder / value.lstrip("/")) for key, value in environment.items()
                            if key in ("SPILLWAY_CERT", "SPILLWAY_CLIENT_CA")})
        environment["SPILLWAY_BIND"] = "127.0.0.1:%d" % ports["grpc"]

        def tried():
            return subprocess.run(["haproxy", "-c", "-f", PROXY / "haproxy.cfg"], capture_output=True,
                                  env={**os.environ, **environment}, text=True, check=False)
        good = tried()
        check(label + ": HAProxy finds what the Secrets mount", good.stderr if good.returncode else "")
        key = pathlib.Path(environment["SPILLWAY_CERT"] + ".key")
        key.rename(key.with_suffix(".away"))
        check(label + ": HAProxy does not start without the key",
              "" if tried().returncode else "it does")


def check_certificate(label, deployment, certificate, resources):
    """The Secret that cert-manager writes is the one that is mounted, for the names that clients use."""
    mounted = [volume["secret"]["secretName"] for volume in manifests.pod_spec(deployment)["volumes"]
               if volume["name"] == "tls"]
    reloaded = deployment["metadata"].get("annotations", {}).get("secret.reloader.stakater.com/reload")
    check(label + ": the proxy has the Certificate's Secret, and a renewal rolls the pods out",
          "" if mounted == [certificate["secretName"]] == [reloaded] else
          "%s, %s, %s" % (mounted, certificate["secretName"], reloaded))
    names = {"%(name)s.%(namespace)s" % resource["metadata"] for resource in resources
             if resource["kind"] == "Service"}
    check(label + ": the Certificate is for both services",
          "" if set(certificate["dnsNames"]) == names else str(certificate["dnsNames"]))


def check_journal(label, spec, arguments, spillwayd):
    server = manifests.container(spec, "spillwayd")
    folder = flags(arguments)["--journal"]
    volume = next(volume for volume in spec["volumes"] if volume["name"] == mounts(server)[folder])
    mount = next(mount for mount in server["volumeMounts"] if mount["mountPath"] == folder)
    if "persistentVolumeClaim" in volume:
        # Two servers must not write the same files.
        check(label + ": each pod has a folder of its own in the claim",
              "" if mount.get("subPathExpr") == "$(POD_NAME)" and
              "POD_NAME" in variables(server) and "fsGroup" in spec["securityContext"] else str(mount))
    else:
        check(label + ": the volume is a pod's own", "" if "emptyDir" in volume else str(volume))
    said = subprocess.run([spillwayd, "--help"], check=True, capture_output=True, text=True).stdout
    if "--journal " not in said:
        checks.skip("this spillwayd has no --journal")
        return
    with tempfile.TemporaryDirectory() as written:
        tried = subprocess.run([spillwayd, *(each.replace(folder, written) for each in arguments),
                                "--check"], capture_output=True, text=True)
    check(label + ": spillwayd could start so", tried.stderr if tried.returncode else "")
    effective = dict(line.split("=", 1) for line in tried.stdout.splitlines() if "=" in line)
    most = size(effective["--journal-file-bytes"]) * int(effective["--journal-files"])
    if "emptyDir" in volume:
        check(label + ": the files have room in their volume",
              "" if most <= size(volume["emptyDir"]["sizeLimit"]) else "they take %d bytes" % most)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spillwayd", default=ROOT / "build/bin/spillwayd", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        operators = crds.validators()
    except crds.Unavailable as reason:
        checks.skip("%s: resources of operators are not held against their schemas" % reason)
        operators = None
    for path in manifests.files():
        for resource in manifests.load(path):
            name = "%s/%s" % (resource["kind"], resource["metadata"]["name"])
            check_schemas(name, [resource], operators)
            if manifests.pod_spec(resource):
                check_pod(name, manifests.pod_spec(resource))
    for folder, kustomization in manifests.kustomizations().items():
        check_kustomization(folder, kustomization)
    check_server(manifests.find("Deployment", "spillway"), arguments.spillwayd)
    for kind, name in (("Job", "resnet50"), ("TFJob", "resnet50-workers")):
        check_job(manifests.find(kind, name))
    if manifests.kustomize_command():
        for overlay in sorted((manifests.FOLDER / "overlays").iterdir()):
            check_overlay(overlay.name, operators, arguments.spillwayd)
    else:
        checks.skip("no kustomize, and no kubectl with one, here: the overlays are not rendered")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
