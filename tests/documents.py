#!/usr/bin/env python3
"""Tests that what documents point to is there: each link of each Markdown file of the repository,
with its anchor; each file and folder named in code style; the README's length; that no measured
figure stands in two documents, where one of them would be forgotten; that the folders of tests
mirror the tree, as tests/README.md says; and that sources include only what the layers allow, which
rewrite_core/README.md lists.

    tests/documents.py [FILE.md...]      all that git knows, if none is given

Prints a line FILE:LINE: what is wrong, and last `N passed, N failed`, of documents. Exit code 1: one
failed; 2: an argument is not such a file.
"""

import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]

# What a reader of the first page has patience for.
MOST_README_LINES = 220

LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"`([^`]+)`")
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
# Something below a folder of the top, such as `tests/graphs` or `server/flags.cc`.
TOP = "proto|rewrite_core|server|client_lib|deploy|tests"
PATH = re.compile(r"^(?:%s)/[A-Za-z0-9_./-]*$" % TOP)
# Parts whose tests have the same folders; folders that hold what tests read, no tests; and a folder
# whose tests are one table in the folder above.
MIRRORED = ("rewrite_core", "server", "client_lib", "deploy")
TEST_INPUTS = ("client_lib/python/stand_in", "client_lib/python/stand_in/horovod",
               "client_lib/tensorflow_plugin/programs", "rewrite_core/analysis/shapes/op_zoo",
               "rewrite_core/analysis/shapes/tf2")
TESTED_ABOVE = ("rewrite_core/analysis/shapes/shape_functions",)
INCLUDE = re.compile(r'^#include [<"]([\w-]+/[^">]+)[">]')
PRODUCT = ("rewrite_core", "server", "client_lib")
# What the core does without: it has no service, no metrics and no flags.
NOT_IN_CORE = ("grpc/", "grpcpp/", "prometheus/", "absl/flags/")
# A row of rewrite_core/README.md on a folder: `| `graph/` | `spillway_graph` | ...`.
LAYER = re.compile(r"^\| `(\w+)/` \| `spillway_")
PLACEHOLDER = re.compile(r"NAME|\bx/y")


def tracked(*patterns):
    """The names of the files that git knows, relative to the root."""
    return subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True,
                          stdout=subprocess.PIPE, text=True).stdout.split()


def lines_of(path):
    """(number, line, in a fenced block) of each line."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
            yield number, line, True
        else:
            yield number, line, fenced


def anchor_of(heading):
    """As GitHub makes it: markup gone, lower case, spaces to dashes, other signs dropped."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    text = re.sub(r"[^\w\- ]", "", text.lower())
    return text.replace(" ", "-")


def anchors_of(path, known={}):
    if path not in known:
        anchors, seen = set(), {}
        for _, line, fenced in lines_of(path):
            found = None if fenced else HEADING.match(line)
            if found:
                anchor = anchor_of(found.group(1))
                count = seen.get(anchor, 0)
                seen[anchor] = count + 1
                anchors.add(anchor if count == 0 else "%s-%d" % (anchor, count))
        known[path] = anchors
    return known[path]


def wrong_link(document, target):
    """Why the link leads nowhere, or None. Addresses of others are not looked at."""
    if re.match(r"^[a-z][a-z0-9+.-]*:", target):
        return None
    place, _, anchor = target.partition("#")
    path = document if not place else document.parent / urllib.parse.unquote(place)
    if not path.exists():
        return "the link to %s leads nowhere" % target
    path = path.resolve()
    if ROOT not in path.parents and path != ROOT:
        return "the link to %s leads out of the repository" % target
    if anchor and path.suffix == ".md" and anchor not in anchors_of(path):
        return "%s has no heading for #%s" % (place or document.name, anchor)
    return None


def is_path(text):
    """Whether it names something here; NAME and x/y stand for what a reader puts there."""
    return PATH.match(text) and "..." not in text and not PLACEHOLDER.search(text)


def wrong_code(document, text):
    """Why a path in code style is not one, or None. Modules are named without .h and .cc."""
    for path in (ROOT / text, document.parent / text):
        if path.exists() or any(path.parent.glob(path.name + ".*")):
            return None
    return "there is no %s" % text


# What is measured has a unit and, as a rule, three digits or more; round numbers are limits and
# sizes, which documents may share. Of counts of nodes and the like a graph has one, wherever it is
# told.
FIGURE = re.compile(
    r"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?) ?(ms|s|min|MB|GB|MiB|GiB|floors|%|images/s)(?!\w)")


def figures_of(document):
    """(number of the line, figure) of each in prose and tables; what programs print is fenced."""
    for number, line, fenced in lines_of(document):
        for digits, unit in [] if fenced else FIGURE.findall(line):
            significant = digits.replace(",", "").replace(".", "").strip("0")
            if len(significant) >= 3 and digits not in ("128", "256", "512"):
                yield number, "%s %s" % (digits, unit)


def repeated_figures(documents):
    """{document: [messages]} of figures that stand in an earlier document, too."""
    home, wrong = {}, {}
    for document in documents:
        if document.name == "CHANGELOG.md":  # It tells what was, when it was.
            continue
        for number, figure in figures_of(document):
            first, line = home.setdefault(figure, (document, number))
            if first != document:
                wrong.setdefault(document, []).append(
                    "%s:%d: %s stands in %s:%d, too: say it in one of them, and link" % (
                        document.relative_to(ROOT), number, figure, first.relative_to(ROOT), line))
    return wrong


def unpaired_folders():
    """Messages on what tests/README.md says of the folders: each folder of tests of a part answers
    to a folder of that part, and each folder of rewrite_core has tests."""
    folders = {pathlib.PurePosixPath(name).parent for name in tracked("*.cc", "*.py", "*.sh")}
    tested = {folder.relative_to("tests") for folder in folders
              if len(folder.parts) > 1 and folder.parts[0] == "tests"}
    wrong = ["tests/%s: there is no folder %s that it tests" % (folder, folder)
             for folder in tested
             if folder.parts[0] in MIRRORED and str(folder) not in TEST_INPUTS
             and not (ROOT / folder).is_dir()]
    wrong += ["%s: there is no folder tests/%s with its tests" % (folder, folder)
              for folder in folders
              if folder.parts[:1] == ("rewrite_core",) and folder not in tested
              and str(folder) not in TESTED_ABOVE]
    return sorted(wrong)


def layer_of(name, layers):
    """(part, position) of a source: in rewrite_core the position of its folder in the list, or the
    last for files outside the folders; the other parts stand beyond."""
    parts = pathlib.PurePosixPath(name).parts
    if parts[0] != "rewrite_core":
        return parts[0], len(layers) + 1
    return parts[0], layers.index(parts[1]) if parts[1] in layers else len(layers)


def may_include(name, included, layers):
    """Whether the source may: the folders of rewrite_core those listed above them in its README, the
    files beside the folders any of them, the server and the client the core but never each other,
    and the command line only `base` of the core."""
    part, position = layer_of(name, layers)
    if included.split("/")[0] not in (*PRODUCT, "tests"):
        return part != "rewrite_core" or not included.startswith(NOT_IN_CORE)
    other, other_position = layer_of(included, layers)
    if name.startswith("client_lib/cli/") and other == "rewrite_core":
        return included.startswith("rewrite_core/base/")
    return other_position <= position and other in (part, "rewrite_core")


def wrong_includes():
    """Messages on includes against the layers. The linker finds only some of them: a header whose
    functions are inline needs no library."""
    layers = [found.group(1) for _, line, _ in lines_of(ROOT / "rewrite_core" / "README.md")
              for found in [LAYER.match(line)] if found]
    if not layers:
        return ["rewrite_core/README.md: no table lists its folders"]
    sources = tracked(*("%s/*.%s" % (part, kind) for part in PRODUCT for kind in ("h", "cc")))
    return ["%s:%d: includes %s, which its layer may not use" % (name, number, found.group(1))
            for name in sources for number, line, _ in lines_of(ROOT / name)
            for found in [INCLUDE.match(line)]
            if found and not may_include(name, found.group(1), layers)]


def check(document):
    """(checks, [messages]) of one file."""
    checks, wrong, number = 0, [], 0
    name = document.relative_to(ROOT)
    for number, line, fenced in lines_of(document):
        if fenced:
            continue
        whys = [wrong_link(document, found) for found in LINK.findall(CODE.sub("", line))]
        # A link whose text is code: the text went with its ticks, the target did not.
        whys += [wrong_code(document, found) for found in CODE.findall(line) if is_path(found)]
        checks += len(whys)
        wrong += ["%s:%d: %s" % (name, number, why) for why in whys if why]
    if document == ROOT / "README.md" and number > MOST_README_LINES:
        wrong.append("%s:%d: it may have %d lines at most" % (name, number, MOST_README_LINES))
    return checks, wrong


def main(arguments):
    if "-h" in arguments or "--help" in arguments:
        print(__doc__.strip())
        return 0
    if arguments:
        documents = [pathlib.Path(name).resolve() for name in arguments]
        for name, document in zip(arguments, documents):
            if not document.is_file() or ROOT not in document.parents or document.suffix != ".md":
                print("documents.py: %r is no Markdown file of this repository; name one, or none "
                      "for all" % name, file=sys.stderr)
                return 2
    else:
        documents = [ROOT / name for name in tracked("*.md")]
    checks = failed = 0
    repeated = repeated_figures(documents)
    for document in documents:
        some, messages = check(document)
        messages += repeated.get(document, [])
        if document == ROOT / "tests" / "README.md":
            messages += unpaired_folders()
        if document == ROOT / "rewrite_core" / "README.md":
            messages += wrong_includes()
        checks += some
        failed += bool(messages)
        for message in messages:
            print(message)
    if checks == 0:
        print("no document has a link: nothing was checked")
        return 1
    print("%d links and paths in %d documents." % (checks, len(documents)))
    print("%d passed, %d failed" % (len(documents) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
