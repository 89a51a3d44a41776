"""Puts the built plug-in into the wheel, in the folder tensorflow-plugins, where TensorFlow looks for
plug-ins when it is imported.

It is that of SPILLWAY_TENSORFLOW_PLUGINS (a folder), otherwise of the newest build in this repository
(build*/lib/tensorflow-plugins). Spillway's library is in the wheel `spillway-lms`, of the same version.
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
FOLDER = "tensorflow-plugins"
LIBRARIES = ("libspillway_tensorflow_cpu.so", "libspillway_tensorflow_gpu.so")


def project_version():
    """The version of the C++ project, so that there is only one."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"^project\(.*?VERSION ([0-9.]+)", text, re.DOTALL | re.MULTILINE).group(1)


def plugin_folder():
    """Where the built plug-in is."""
    given = os.environ.get("SPILLWAY_TENSORFLOW_PLUGINS")
    found = [pathlib.Path(path) for path in
             ([given] if given else glob.glob(str(ROOT / "build*/lib" / FOLDER)))]
    found = [path for path in found if all((path / name).exists() for name in LIBRARIES)]
    if not found:
        sys.exit(
            "The plug-in (%s) is not in %s. Build it first (cmake --preset release "
            "-DSPILLWAY_TENSORFLOW_PLUGIN=PYTHON && cmake --build build --target "
            "spillway_tensorflow_plugin, where PYTHON has TensorFlow), or set "
            "SPILLWAY_TENSORFLOW_PLUGINS to its folder" % (
                " and ".join(LIBRARIES), given or "%s/build*/lib/%s" % (ROOT, FOLDER)))
    return max(found, key=lambda folder: (folder / LIBRARIES[0]).stat().st_mtime)


class BuildWithPlugin(build_py):
    """Copies the plug-in."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib) / FOLDER
        target.mkdir(parents=True, exist_ok=True)
        folder = plugin_folder()
        for name in LIBRARIES:
            shutil.copyfile(folder / name, target / name)


class PlatformWheel(bdist_wheel):
    """For this platform and any Python 3: there is a library, but no extension module."""

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class PluginDistribution(Distribution):
    """A wheel without Python code; not pure, so that it is for the platform."""

    def has_pure_modules(self):
        return True

    def has_ext_modules(self):
        return True


setup(
    version=project_version(),
    install_requires=["spillway-lms==" + project_version()],
    packages=[],
    distclass=PluginDistribution,
    cmdclass={"build_py": BuildWithPlugin, "bdist_wheel": PlatformWheel},
)
