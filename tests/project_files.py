#!/usr/bin/env python3
"""The files of the project: those that git tracks, or, without git, all except build outputs.

    project_files.py [PATTERN...]      their names, one in a line; `*` stands for folders, too
"""

import fnmatch
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def _is_built(name):
    return name.startswith("build") or name in (".git", ".cache", "__pycache__")


def _walk():
    for folder, folders, files in os.walk(ROOT):
        top = pathlib.Path(folder) == ROOT
        # Further down a folder may be called `build`.
        folders[:] = [name for name in folders
                      if not (_is_built(name) if top else name in ("__pycache__", ".cache"))]
        for name in files:
            yield (pathlib.Path(folder) / name).relative_to(ROOT).as_posix()


def project_files(*patterns):
    """Their names, relative to ROOT, in order; of those that match one of the patterns, if any."""
    names = []
    if (ROOT / ".git").exists():
        try:
            names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.split("\0")
        except (OSError, subprocess.CalledProcessError):
            names = []  # No git, or one that does not trust the folder's owner.
    found = {name for name in names or _walk() if (ROOT / name).is_file()}
    return sorted(name for name in found
                  if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns))


if __name__ == "__main__":
    print("\n".join(project_files(*sys.argv[1:])))
