"""Puts the built library into the wheel: libspillway.so.0 and libspillway_client.so.0, which it
loads from its own folder.

They are those of SPILLWAY_LIBRARY (the path of a libspillway.so.0), otherwise of the newest build
in this repository (build*/lib). Debian's protobuf, gRPC, Abseil, RE2 and OpenSSL are not in the
wheel: see README.md.
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
LIBRARIES = ("libspillway.so.0", "libspillway_client.so.0")


def project_version():
    """That of the C++ project, so that there is one."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"^project\(.*?VERSION ([0-9.]+)", text, re.DOTALL | re.MULTILINE).group(1)


def library_folder():
    """Where the built libraries are."""
    given = os.environ.get("SPILLWAY_LIBRARY")
    if given:
        found = [pathlib.Path(given)]
    else:
        found = [pathlib.Path(path) for path in glob.glob(str(ROOT / "build*/lib" / LIBRARIES[0]))]
    found = [path.parent for path in found
             if all((path.parent / name).exists() for name in LIBRARIES)]
    if not found:
        sys.exit(
            "Spillway's libraries %s are not %s. Build them first (cmake --preset release && cmake "
            "--build build --target spillway_shared), or set SPILLWAY_LIBRARY to a %s" % (
                " and ".join(LIBRARIES),
                "beside " + given if given else "in %s/build*/lib" % ROOT, LIBRARIES[0]))
    return max(found, key=lambda folder: (folder / LIBRARIES[0]).stat().st_mtime)


class BuildWithLibrary(build_py):
    """Copies the libraries beside the package."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / "spillway" / "lib"
        target.mkdir(parents=True, exist_ok=True)
        folder = library_folder()
        for name in LIBRARIES:
            shutil.copyfile(folder / name, target / name)  # Follows links.


class PlatformWheel(bdist_wheel):
    """For this platform and any Python 3: there is a library, but no extension module."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class BinaryDistribution(Distribution):
    """Says that the package is not pure, so that it goes to the platform's folder."""

    def has_ext_modules(self):
        return True


setup(
    version=project_version(),
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
)
