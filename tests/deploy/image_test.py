#!/usr/bin/env python3
"""Builds the image of the Dockerfile with buildah, and runs the commands of deploy/kubernetes in it:
the server as the Deployment starts it, the init container as the Job does. No container engine and no
cluster: both run by chroot, as the image's user, on a read-only root, in a network of their own. The
image's build makes the packages of deploy/debian, too, which takes minutes: with --packages, those that
packages_test.sh has made take their place; with --compare, too, they are made again, in another folder,
and have to be the same. Takes root."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from checks import add, check, finish, skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRAPH = ROOT / "tests/graphs/resnet50_tf1/graph_shapes.pb"
MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
NEEDS = {"buildah": "buildah", "debootstrap": "debootstrap", "chroot": "coreutils",
         "ip": "iproute2", "mount": "mount", "unshare": "util-linux"}  # And their packages.

# An image with more than the runtime's files would have some of these.
NOT_IN_THE_IMAGE = ("usr/bin/g++", "usr/bin/cmake", "usr/include/grpcpp", "src", "build", "packages",
                    "usr/bin/apt-get", "usr/bin/dpkg", "usr/bin/perl", "usr/share/locale", "usr/share/man")

STARTUP_S = 30


class Failure(Exception):
    """The test cannot go on; the text says why."""


def run(*command, **options):
    """A command that has to work; its standard output."""
    done = subprocess.run(command, text=True, capture_output=True, **options)
    if done.returncode != 0:
        raise Failure("%s ended with %d:\n%s" % (
            shlex.join(str(word) for word in command), done.returncode,
            (done.stdout + done.stderr)[-4000:]))
    return done.stdout.strip()


def install():
    """Installs missing tools, if apt has them."""
    packages = [package for tool, package in NEEDS.items() if not shutil.which(tool)]
    if packages and shutil.which("apt-get"):
        print("Installing: " + " ".join(packages), flush=True)
        for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            subprocess.run(["apt-get", "-qq", *command], stdout=subprocess.DEVNULL, check=False,
                           env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


class Storage:
    """buildah with a storage of its own, which goes with `folder`."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, *arguments):
        return run("buildah", "--root", self.folder / "storage", "--runroot", self.folder / "run",
                   "--storage-driver", "vfs", *arguments)


def make_base(buildah, folder, base_folder):
    """debian:bookworm-slim, or as good as: an image of Debian's minimal system."""
    root = base_folder or folder / "debian"
    if not root.is_dir():
        print("Fetching Debian's minimal system (about a minute).", flush=True)
        run("debootstrap", "--variant=minbase", SUITE, root, MIRROR)
    container = buildah("from", "scratch")
    buildah("add", "-q", container, root, "/")
    buildah("commit", "-q", container, "localhost/base")
    buildah("rm", container)


def made_of(packages, folder):
    """buildah's arguments so that the stage `build` is a folder with `packages`."""
    text = (ROOT / "Dockerfile").read_text()
    without, cut = re.subn(r"^FROM \S+ AS build$.*?(?=^FROM )", "", text, flags=re.M | re.S)
    if cut != 1 or not list(packages.glob("*.buildinfo")):
        raise Failure("the Dockerfile has no stage `build`, or there are no packages in %s" % packages)
    (folder / "Dockerfile").write_text(without)
    made = folder / "made/packages"
    made.mkdir(parents=True)
    for file in packages.iterdir():
        if file.is_file():
            shutil.copy(file, made)
    return "-f", folder / "Dockerfile", "--build-context", "build=%s" % made.parent


class Chroot:
    """The image's root in this process's mounts, read-only but for the volumes; commands in it run
    as the user of a pod."""

    def __init__(self, root, spec):
        self.root = pathlib.Path(root)
        security = spec["securityContext"]
        self.user = "%d:%d" % (security["runAsUser"], security["runAsGroup"])

    def prepare(self, volumes):
        """`volumes`: the path in the image, and the folder that is mounted there."""
        for inside in ["/dev", "/proc", *volumes]:
            (self.root / inside.lstrip("/")).mkdir(exist_ok=True)
        # As a cluster's DNS would answer.
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost spillway.spillway\n")
        run("mount", "--bind", self.root, self.root)
        run("mount", "-o", "remount,bind,ro", self.root)
        run("mount", "-t", "proc", "proc", self.root / "proc")
        # As every runtime gives one: the image has none.
        run("mount", "--rbind", "/dev", self.root / "dev")
        for inside, outside in volumes.items():
            run("mount", "--bind", outside, self.root / inside.lstrip("/"))

    def popen(self, command, environment=()):
        return subprocess.Popen(
            [shutil.which("chroot"), "--userspec=" + self.user, "--groups=", str(self.root),
             *command],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **dict(environment)})

    def run(self, command, environment=()):
        process = self.popen(command, environment)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


def await_serving(chroot, address):
    """As the readiness probe asks."""
    deadline = time.monotonic() + STARTUP_S
    while time.monotonic() < deadline:
        code, out, err = chroot.run(["spillway", "health", "--server", address, "--timeout", "2s",
                                     "--service", "spillway.v1.RewriteService"])
        if code == 0:
            return
        time.sleep(0.1)
    raise Failure("the server does not serve after %d s: %s%s" % (STARTUP_S, out, err))


def test_image(image_root, config):
    check("runs as a user that is not root", config["User"] == "65532:65532", config["User"])
    check("starts spillwayd", config["Entrypoint"] == ["spillwayd"], config["Entrypoint"])
    check("starts nothing without TLS unless it is told to", "--insecure" not in config["Cmd"],
          config["Cmd"])
    check("exposes gRPC and metrics", set(config["ExposedPorts"]) == {"7070/tcp", "9464/tcp"},
          config["ExposedPorts"])
    there = [path for path in NOT_IN_THE_IMAGE if (image_root / path).exists()]
    check("has no compiler, no source and no package manager", not there, there)
    for program in ("bin/spillwayd", "bin/spillway", "sbin/haproxy"):
        libraries = run("chroot", str(image_root), "/lib64/ld-linux-x86-64.so.2", "--list",
                        "/usr/" + program)
        check("has every library of " + program, "not found" not in libraries, libraries)
    packages = {path.name for path in (image_root / "var/lib/dpkg/status.d").iterdir()}
    without = sorted(name for name in packages
                     if not (image_root / "usr/share/doc" / name / "copyright").exists())
    check("names its packages, each with its copyright file",
          {"spillway-server", "libgrpc++1.51", "haproxy", "libc6"} <= packages and not without,
          without or packages)


def read_buildinfo(folder):
    """The checksums of the packages that a build made, and the versions that it was made with."""
    text = next(folder.glob("spillway_*.buildinfo")).read_text()
    sums = dict(reversed(line.split()[::2]) for line in re.search(
        r"^Checksums-Sha256:\n((?: .*\n)+)", text, re.MULTILINE).group(1).splitlines())
    depends = dict(re.findall(r"^ (\S+) \(= ([^)]+)\)", text, re.MULTILINE))
    return {name: digest for name, digest in sums.items() if name.endswith(".deb")}, depends


def test_same_packages(image_root, packages):
    """Whether both builds gave the same bytes."""
    if not list(packages.glob("spillway_*.buildinfo")):
        skip("there are no packages in %s to compare with" % packages)
        return
    here, built_with = read_buildinfo(packages)
    there, also_built_with = read_buildinfo(image_root / "usr/share/doc/spillway-server")
    other = ["%s: %s and %s" % (name, version, also_built_with[name])
             for name, version in sorted(built_with.items())
             if also_built_with.get(name, version) != version]
    if here != there and other:
        skip("the two builds differ, and had different versions of " + ", ".join(other))
        return
    check("another build in another folder gave the same packages",
          len(here) == 5 and here == there, "%s\n        %s" % (here, there))


def test_run(image_root):
    """Server and job, in the network and the mounts of this process alone."""
    import manifests
    deployment = manifests.pod_spec(manifests.find("Deployment", "spillway"))
    job_resource = manifests.find("Job", "resnet50")
    job = manifests.pod_spec(job_resource)
    server = manifests.container(deployment, "spillwayd")
    proxy = manifests.container(deployment, "proxy")
    rewrite = manifests.container(job, "rewrite")
    asks = manifests.environment(job_resource, rewrite)
    # Both images are this one: their user and their mounts.
    chroot = Chroot(image_root, deployment)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data, graph, socket = (folder / name for name in ("data", "graph", "socket"))
        for made in (data, graph, socket):
            made.mkdir()
        folder.chmod(0o755)
        shutil.copy(GRAPH, data / "graph.pb")
        for writable in (graph, socket):
            os.chown(writable, *(int(part) for part in chroot.user.split(":")))
        volumes = {"data": data, "graph": graph, "socket": socket, "proxy": ROOT / "deploy/proxy"}
        chroot.prepare({mount["mountPath"]: volumes[mount["name"]]
                        for mount in rewrite["volumeMounts"] + proxy["volumeMounts"]})

        code, out, err = chroot.run(rewrite["command"], asks)
        check("without a server the job goes on with the original graph",
              code == 0 and (graph / "graph.pb").read_bytes() == GRAPH.read_bytes(), err)
        check("and one line says so", err.count("\n") == 1 and "spillway" in err, err)

        code, out, err = chroot.run(["spillwayd", "--listen", "0.0.0.0:7070"])
        check("without arguments it says what it takes",
              code == 2 and "--tls-cert" in err and "--insecure" in err, err)

        started = time.monotonic()
        process = chroot.popen(["spillwayd", *server["args"]])
        stack.callback(process.kill)
        front = chroot.popen(proxy["command"], ((each["name"], each["value"])
                                                for each in proxy["env"]))
        stack.callback(front.kill)
        await_serving(chroot, "127.0.0.1:7070")
        code, out, err = chroot.run(server["livenessProbe"]["exec"]["command"])
        check("the liveness probe finds the server alive", code == 0, out + err)
        print("        the server served after %.2f s" % (time.monotonic() - started))
        expected = subprocess.run(
            ["chroot", str(image_root), "spillway", "rewrite", "/data/graph.pb", "-o", "-", "--quiet"],
            check=True, capture_output=True).stdout
        code, out, err = chroot.run(rewrite["command"], asks)
        written = (graph / "graph.pb").read_bytes()
        check("the init container rewrites the graph",
              code == 0 and written == expected and written != GRAPH.read_bytes(), err)
        code, out, err = chroot.run(rewrite["command"], asks)
        check("the init container can be started again",
              code == 0 and (graph / "graph.pb").read_bytes() == written, err)
        check("others may read the graph", (graph / "graph.pb").stat().st_mode & 0o777 == 0o644,
              oct((graph / "graph.pb").stat().st_mode))
        metrics = urllib.request.urlopen("http://127.0.0.1:9464/metrics", timeout=10).read().decode()
        counted = re.findall(r'^spillway_rewrite_outcomes_total{.*outcome="rewritten".*} (\d+)$',
                             metrics, re.MULTILINE)
        check("the server counted it", sum(int(count) for count in counted) == 1,
              [line for line in metrics.splitlines() if "outcomes" in line])

        stopped = time.monotonic()
        waiting = chroot.popen(proxy["lifecycle"]["preStop"]["exec"]["command"],
                               ((each["name"], each["value"]) for each in proxy["env"]))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=deployment["terminationGracePeriodSeconds"])
        check("SIGTERM drains it within the grace period", process.returncode == 0,
              "exit code %d: %s" % (process.returncode, err))
        print("        it drained in %.1f s" % (time.monotonic() - stopped))
        check("the proxy outlives it, and not for long",
              waiting.wait(timeout=STARTUP_S) == 0 and front.poll() is None, front.poll())
        lines = [line for line in err.splitlines() if line]
        check("its log is JSON", lines and all(is_json(line) for line in lines), err)


def is_json(line):
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=pathlib.Path,
                        help="a folder with Debian's minimal system; made there if it is not there")
    parser.add_argument("--install", action="store_true",
                        help="installs what is missing, with apt")
    parser.add_argument("--packages", type=pathlib.Path,
                        help="the folder of packages_test.sh: the image is made of them")
    parser.add_argument("--compare", action="store_true",
                        help="makes the packages again, and compares them with those of --packages")
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare and not arguments.packages:
        parser.error("--compare is with those of --packages DIR")
    if arguments.inside:  # In namespaces of our own: see below.
        run("ip", "link", "set", "lo", "up")
        test_run(arguments.inside)
        return finish()
    if arguments.install and os.geteuid() == 0:
        install()
    missing = [tool for tool in NEEDS if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        print("skipped: the image is not tested: it takes root%s" %
              ("".join(" and " + tool for tool in missing)))
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="spillway-image-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        buildah = Storage(folder)
        make_base(buildah, folder, arguments.base)
        print("Building the image (some minutes).", flush=True)
        makes_packages = arguments.compare or not arguments.packages
        buildah("bud", "--isolation", "chroot", "--build-arg", "BASE=localhost/base", "-t",
                "localhost/spillway", "--ignorefile", ROOT / ".dockerignore",
                *(("-f", ROOT / "Dockerfile") if makes_packages else
                  made_of(arguments.packages, folder)), ROOT)
        check("the image builds", True)
        image = json.loads(buildah("inspect", "--type", "image", "localhost/spillway"))
        container = buildah("from", "localhost/spillway")
        image_root = pathlib.Path(buildah("mount", container))
        test_image(image_root, image["OCIv1"]["config"])
        print("        its root holds %s" % run("du", "-sh", "--apparent-size", image_root).split()[0])
        if arguments.compare:
            test_same_packages(image_root, arguments.packages)
        # Private mounts and ports, which end with the process.
        inside = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", sys.executable,
             __file__, "--inside", str(image_root)], stdout=subprocess.PIPE, text=True)
        print(inside.stdout, end="")
        add_counts(inside.stdout, inside.returncode)
        buildah("umount", container)
    return finish()


def add_counts(output, code):
    lines = output.strip().splitlines()
    words = lines[-1].split() if lines else []
    if len(words) < 4 or words[1] != "passed,":
        add(0, ["the commands of the manifests (exit code %d)" % code])
        return
    add(int(words[0]), ["inside"] * int(words[2]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        check("image", False, failure)
        sys.exit(finish())
