#!/usr/bin/env python3
"""Runs the code of proto/any_language.md, as it stands there: page.py [SECTION...]. Run it with
with_server.sh. The last line is `N passed, N failed`.

Without SECTION: all whose tools are installed. The sections are the page's headings `## grpcurl`,
`## Python` and `## Go`. Each has a folder of its own, with a graph.pb. A block of Python or Go is a
file, whose name its first line says. A block `sh` is run, unless it is `sh install`; a block
without a language after it has its output, in this order, with other lines in between. Every
swapped.pb has to equal the program's result for the graph with these options.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "proto" / "any_language.md"
# Building gRPC for Go takes a minute on a busy machine.
PATIENCE_S = 300
# Those that the page gives.
OPTIONS = ("--batch-size", "64", "--gpu-memory-bytes", "26MiB")
BLOCK = re.compile(r"^```(\S*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A section's needs besides Python's packages.
TOOLS = {"grpcurl": "grpcurl", "Go": "protoc-gen-go-grpc"}
LANGUAGES = ("sh", "python", "go", "")

sys.path.insert(0, str(ROOT / "client_lib" / "python"))

import make_stubs  # pylint: disable=wrong-import-position


def sections(text):
    """{heading: [(language, word after it, contents)]}"""
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = part.partition("\n")
        found[heading] = BLOCK.findall(rest)
    return found


def check_printed(expected, printed):
    """Each expected line is a part of a printed one, in their order."""
    lines = iter(printed.splitlines())
    for line in expected.splitlines():
        wanted = " ".join(line.split())
        assert any(wanted in " ".join(shown.split()) for shown in lines), (
            "not printed (or not in this order): %r\n%s" % (line, printed[:2000]))


def run_section(name, blocks, folder, environment):
    """Yields the first line of each command block that has run; AssertionError if one is wrong."""
    shutil.copyfile(os.environ["SPILLWAY_SMALL"], folder / "graph.pb")
    expected = folder / "expected.pb"
    subprocess.run([os.environ["SPILLWAY_BIN"] + "/spillway", "rewrite", folder / "graph.pb", "-o", expected,
                    "--quiet", *OPTIONS], check=True)
    assert b"lms/swapout" in expected.read_bytes(), "nothing is swapped, so a client could be wrong unseen"
    rewritten, printed = 0, None
    for language, word, contents in blocks:
        assert language in LANGUAGES, language
        if language == "sh" and word == "install":
            continue
        if language == "sh":
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", contents], cwd=folder, text=True,
                                  env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=PATIENCE_S, check=False)
            printed = done.stdout
            assert done.returncode == 0, "exit code %d of:\n%s%s" % (
                done.returncode, contents, printed[-2000:])
            if "swapped.pb" in contents:
                rewritten += 1
                result = folder / "swapped.pb"
                assert result.read_bytes() == expected.read_bytes(), "another graph than the program's"
                result.unlink()
            yield contents.splitlines()[0]
        elif language == "":
            check_printed(contents, printed)
            yield "prints " + contents.splitlines()[0].strip()
        else:
            first = contents.splitlines()[0]
            (folder / first.split()[-1]).write_text(contents)
    assert rewritten > 0, "%s rewrites nothing" % name


def main():
    found = sections(PAGE.read_text())
    names = sys.argv[1:] or [name for name, blocks in found.items() if blocks]
    away = [] if sys.argv[1:] else [
        name for name in names if name in TOOLS and not shutil.which(TOOLS[name])]
    for name in away:
        names.remove(name)
        print("skipped: no %s here: the section %s is not run" % (TOOLS[name], name))
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        stubs = pathlib.Path(folder) / "stubs"
        stubs.mkdir()
        make_stubs.make(stubs)
        # `python3` is the Python that runs this.
        tools = pathlib.Path(folder) / "bin"
        tools.mkdir()
        (tools / "python3").write_text('#!/bin/sh\nexec "%s" "$@"\n' % sys.executable)
        (tools / "python3").chmod(0o755)
        environment = {**os.environ, "SERVER": os.environ["SPILLWAY_SERVER"], "SPILLWAY": str(ROOT),
                       "PYTHONPATH": str(stubs), "PATH": "%s:%s" % (tools, os.environ["PATH"])}
        for name in names:
            place = pathlib.Path(folder) / name
            place.mkdir()
            try:
                for case in run_section(name, found[name], place, environment):
                    passed += 1
                    print("ok      page %s: %s" % (name, case), flush=True)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                failed += 1
                print("FAILED  page %s: %s" % (name, error), flush=True)
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % len(away) if away else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
