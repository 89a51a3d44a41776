"""Puts the built library and program into the wheel, and gRPC stubs (make_stubs.py).

The library is that of SPILLWAY_LIBRARY (the path of a libspillway.so.0), otherwise of the newest build
in this repository (build*/lib): libspillway.so.0 and libspillway_client.so.0, which it loads from its
own folder. They need Debian 12's protobuf, gRPC, Abseil, RE2 and OpenSSL, which are not in the wheel.
A libspillway.so.0 of deploy/portable has all that in it, and goes into the wheel alone. The program is
../bin/spillway, from the library's folder; without one, the command `spillway` looks on the PATH.
"""

import glob
import os
import pathlib
import re
import shutil
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # Before setuptools 70.1.
    from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # As pip's own builds do not.

import generate  # pylint: disable=wrong-import-position
import make_stubs  # pylint: disable=wrong-import-position

LIBRARY = "libspillway.so.0"
# The other half, which LIBRARY loads, unless it has all in itself.
CLIENT = "libspillway_client.so.0"


def project_version():
    """The version of the C++ project, so that there is only one."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"^project\(.*?VERSION ([0-9.]+)", text, re.DOTALL | re.MULTILINE).group(1)


def libraries(library):
    """The files that a libspillway.so.0 is made of; none if one of them is missing."""
    if not library.exists():
        return []
    if CLIENT.encode() not in library.read_bytes():  # The name that it would load.
        return [library]
    client = library.with_name(CLIENT)
    return [library, client] if client.exists() else []


def built_libraries():
    """Those that go into the wheel."""
    given = os.environ.get("SPILLWAY_LIBRARY")
    found = [pathlib.Path(path) for path in
             ([given] if given else glob.glob(str(ROOT / "build*/lib" / LIBRARY)))]
    found = [files for files in map(libraries, found) if files]
    if not found:
        sys.exit(
            "Spillway's libraries %s and %s are not %s. Build them first (cmake --preset release && "
            "cmake --build build --target spillway_shared), or set SPILLWAY_LIBRARY to a %s" % (
                LIBRARY, CLIENT, "beside " + given if given else "in %s/build*/lib" % ROOT, LIBRARY))
    return max(found, key=lambda files: files[0].stat().st_mtime)


class BuildWithLibrary(build_py):
    """Copies the library into the package, and makes the stubs beside it."""

    def run(self):
        super().run()
        package = pathlib.Path(self.build_lib) / "spillway"
        target = package / "lib"
        shutil.rmtree(target, ignore_errors=True)  # That of another build, in the same folder.
        target.mkdir(parents=True)
        files = built_libraries()
        for path in files:
            shutil.copyfile(path, target / path.name)  # Follows links.
        program = files[0].parent.parent / "bin" / "spillway"
        shutil.rmtree(package / "bin", ignore_errors=True)
        if program.exists():
            (package / "bin").mkdir()
            shutil.copy(program, package / "bin")  # With its mode.
        # The licenses of code that is linked into the library, if any.
        licenses = files[0].with_name("licenses")
        if licenses.is_dir():
            shutil.copytree(licenses, target / "licenses")
        try:
            make_stubs.make(self.build_lib)
        except make_stubs.StubsError as error:
            sys.exit("The wheel's gRPC stubs: %s" % error)
        for file, made in generate.generated("package", package).items():
            file.write_text(made)


class PlatformWheel(bdist_wheel):
    """For this platform and any Python 3: there is a library, but no extension module."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class BinaryDistribution(Distribution):
    """Declares that the package is not pure, so that it goes to the platform's folder."""

    def has_ext_modules(self):
        return True


setup(
    version=project_version(),
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
)
