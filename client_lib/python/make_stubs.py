#!/usr/bin/env python3
"""Makes the package spillway_grpc: gRPC stubs of spillway.v1 for Python.

    make_stubs.py FOLDER        # makes FOLDER/spillway_grpc

It is the output of protoc and gRPC's plug-in for proto/spillway/v1, with type stubs, under a name of its
own: as protoc names them, the modules are `spillway.v1`, a part of any package called `spillway`. The
messages keep their names, and their files those that they have in protobuf's pool, so other stubs of
the same files may be in the same process.

setup.py puts the package into the wheel. protoc and its plug-in are those on the PATH (Debian:
protobuf-compiler, protobuf-compiler-grpc). Debian 12's write stubs that every protobuf from 3.20 on can
load; a newer protoc asks for its own version or a later one.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"
PACKAGE = "spillway_grpc"
ABOUT = '''"""gRPC stubs of spillway.v1, for calls without the client library. They need grpcio and protobuf
(`spillway-lms[grpc]`); `import spillway` needs neither, and none of this.

    from spillway_grpc.v1 import rewrite_service_pb2_grpc
"""
'''
# Modules import each other by the path of their .proto files, and messages say which module they are
# of, for pickle and copy.
NAMES = (
    (re.compile(r"^from spillway\.v1 import ", re.MULTILINE), "from %s.v1 import " % PACKAGE),
    (re.compile(r"(\.Build\w+\(DESCRIPTOR, ')spillway\.v1\."), r"\1%s.v1." % PACKAGE),
)


class StubsError(Exception):
    """The missing part, and the remedy."""


def find_tool(name, package):
    """The path of a program."""
    path = shutil.which(name)
    if path is None:
        raise StubsError("%s is not on the PATH: install it (Debian: apt-get install %s)" % (
            name, package))
    return path


def make(folder, proto=PROTO):
    """Makes the package in `folder`; returns its path. Raises StubsError."""
    files = sorted(str(path.relative_to(proto)) for path in proto.glob("spillway/v1/*.proto"))
    if not files:
        raise StubsError("there are no .proto files in %s/spillway/v1" % proto)
    protoc = find_tool("protoc", "protobuf-compiler")
    plugin = find_tool("grpc_python_plugin", "protobuf-compiler-grpc")
    package = pathlib.Path(folder) / PACKAGE
    with tempfile.TemporaryDirectory() as made:
        done = subprocess.run(
            [protoc, "-I", str(proto), "--python_out", made, "--pyi_out", made,
             "--plugin=protoc-gen-grpc_python=" + plugin, "--grpc_python_out", made, *files],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise StubsError("%s made no stubs: %s" % (protoc, done.stdout.strip()))
        # Modules removed since the last time must not remain.
        shutil.rmtree(package, ignore_errors=True)
        (package / "v1").mkdir(parents=True)
        for path in sorted((pathlib.Path(made) / "spillway" / "v1").iterdir()):
            # Messages alone have no service: their file of services is empty.
            if path.name.endswith("_pb2_grpc.py") and "class " not in path.read_text():
                continue
            text = path.read_text()
            for pattern, name in NAMES:
                text = pattern.sub(name, text)
            (package / "v1" / path.name).write_text(text)
    (package / "__init__.py").write_text(ABOUT)
    (package / "v1" / "__init__.py").write_text("")
    (package / "py.typed").write_text("")
    return package


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="where the package is made; made if it is not there")
    try:
        print(make(parser.parse_args().folder))
    except StubsError as error:
        sys.exit("make_stubs.py: %s" % error)


if __name__ == "__main__":
    main()
