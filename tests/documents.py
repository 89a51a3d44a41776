#!/usr/bin/env python3
"""Tests that documents refer to existing things: each link of each Markdown file of the repository,
with its anchor; each file and folder named in code style; the length of each, and of the README's
lines; that no measured figure stands in two documents, where one of them would be forgotten; that
the folders of tests mirror the tree, as tests/README.md says; and that sources include, and targets
link, only as the layers allow, which the READMEs in LAYERED list.

    tests/documents.py [FILE.md...]      all of the project, if none is given

Prints a line FILE:LINE: problem for each failure, and last `N passed, N failed`, of documents. Exit
code 1: one failed; 2: an argument is not such a file.
"""

import pathlib
import re
import sys
import urllib.parse

from project_files import ROOT, project_files

# A reader's patience for the first page.
MOST_README_LINES = 235
# Words that each document may have, as `wc -w` counts them: a tenth more than it had when this was
# written, so that a sentence can be added without taking one out; and all together.
MOST_WORDS = {
    "README.md": 2260,
    "DESIGN.md": 2380,
    "CONTRIBUTING.md": 1465,
    "SECURITY.md": 1482,
    "CHANGELOG.md": 485,
    "client_lib/README.md": 3591,
    "client_lib/TOUR.md": 1923,
    "client_lib/python/README.md": 1742,
    "client_lib/tensorflow_plugin/README.md": 701,
    "client_lib/RECIPES.md": 493,
    "client_lib/cli/README.md": 224,
    "client_lib/plot/README.md": 165,
    "proto/README.md": 879,
    "proto/any_language.md": 546,
    "server/README.md": 3591,
    "deploy/README.md": 1206,
    "deploy/prometheus/RUNBOOK.md": 1084,
    "deploy/kubernetes/README.md": 770,
    "deploy/kubernetes/chart/README.md": 125,
    "deploy/UPGRADES.md": 659,
    "deploy/slurm/README.md": 604,
    "deploy/debian/README.md": 440,
    "deploy/portable/README.md": 314,
    "deploy/proxy/README.md": 187,
    "deploy/scale/README.md": 764,
    "deploy/journal/README.md": 448,
    "rewrite_core/README.md": 1455,
    "rewrite_core/strategy/README.md": 2640,
    "tests/README.md": 699,
    "tests/tensorflow/README.md": 1960,
    "tests/benchmarks/README.md": 1792,
    "tests/graphs/README.md": 769,
    "tests/fuzz/README.md": 351,
    "tests/client_lib/python/README.md": 159,
    "tests/client_lib/tensorflow_plugin/README.md": 82,
    "tests/integration/skew/README.md": 218,
    "tests/integration/foreign/README.md": 102,
    "tests/deploy/README.md": 98,
}
MOST_WORDS_IN_ALL = 37250

LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"`([^`]+)`")
FENCE = re.compile(r"^\s*(```|~~~)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
# Something below a folder of the top, such as `tests/graphs` or `server/flags.cc`.
TOP = "proto|rewrite_core|server|client_lib|deploy|tests"
PATH = re.compile(r"^(?:%s)/[A-Za-z0-9_./-]*$" % TOP)
# Parts whose tests have the same folders; folders with inputs of tests, no tests; and a folder
# whose tests are one table in the folder above.
MIRRORED = ("rewrite_core", "server", "client_lib", "deploy")
ALL_TESTED = ("rewrite_core/", "server/", "client_lib/text/")
TEST_INPUTS = ("client_lib/python/stand_in", "client_lib/python/stand_in/horovod",
               "client_lib/tensorflow_plugin/programs", "rewrite_core/analysis/shapes/op_zoo",
               "rewrite_core/analysis/shapes/tf2")
TESTED_ABOVE = ("rewrite_core/analysis/shapes/shape_functions",)
INCLUDE = re.compile(r'^#include [<"]([\w-]+/[^">]+)[">]')
PRODUCT = ("rewrite_core", "server", "client_lib")
# Libraries that the core lacks: it has no service, no metrics and no flags.
NOT_IN_CORE = ("grpc/", "grpcpp/", "prometheus/", "absl/flags/")
# READMEs with a table of layers, the lowest first: `| `FOLDER/` | `TARGET` | contents |`.
LAYERED = ("rewrite_core", "server", "client_lib", "client_lib/cli")
LAYER = re.compile(r"^\| `([\w/]+)/` \| `(\w+)`")
# READMEs whose layers are targets of their own, which link only those above in the table.
LINKED = ("rewrite_core", "server")
CMAKE_CALL = re.compile(r"(\w+)\(\s*(\w+)([^)]*)\)")
PLACEHOLDER = re.compile(r"NAME|\bx/y")


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
    """Whether it names something here; NAME and x/y stand for a reader's own names."""
    return PATH.match(text) and "..." not in text and not PLACEHOLDER.search(text)


def wrong_code(document, text):
    """Why a path in code style is not one, or None. Modules are named without .h and .cc."""
    for path in (ROOT / text, document.parent / text):
        if path.exists() or any(path.parent.glob(path.name + ".*")):
            return None
    return "there is no %s" % text


# Measured figures have a unit and, as a rule, three digits or more; round numbers are limits and
# sizes, which documents may share. Counts of nodes and the like belong to a graph, in any document.
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
        if document.name == "CHANGELOG.md":  # It is a history.
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
    to a folder of that part, and each folder of ALL_TESTED has tests."""
    folders = {pathlib.PurePosixPath(name).parent for name in project_files("*.cc", "*.py", "*.sh")}
    tested = {folder.relative_to("tests") for folder in folders
              if len(folder.parts) > 1 and folder.parts[0] == "tests"}
    wrong = ["tests/%s: there is no folder %s that it tests" % (folder, folder)
             for folder in tested
             if folder.parts[0] in MIRRORED and str(folder) not in TEST_INPUTS
             and not (ROOT / folder).is_dir()]
    wrong += ["%s: there is no folder tests/%s with its tests" % (folder, folder)
              for folder in folders
              if ("%s/" % folder).startswith(ALL_TESTED) and folder not in tested
              and str(folder) not in TESTED_ABOVE]
    return sorted(wrong)


def layers_of(place):
    """[(folder, target)] of the table in the README of a folder, the lowest first."""
    return [("%s/%s/" % (place, found.group(1)), found.group(2))
            for _, line, _ in lines_of(ROOT / place / "README.md") for found in [LAYER.match(line)]
            if found]


def layer_of(name, folders):
    """The position of the deepest folder that contains a source; the last, if none does."""
    inside = [folder for folder in folders if name.startswith(folder)]
    return folders.index(max(inside, key=len)) if inside else len(folders)


def may_include(name, included, maps):
    """Whether the source may: its own folder and those above it in each table that lists them, the
    server and the client the core but never each other, and the command line only `base` of the core."""
    part, other = name.split("/")[0], included.split("/")[0]
    if other not in (*PRODUCT, "tests"):  # The public headers, `spillway/`, are for all.
        return part != "rewrite_core" or not included.startswith(NOT_IN_CORE)
    if name.startswith("client_lib/cli/") and other == "rewrite_core":
        return included.startswith("rewrite_core/base/")
    return other in (part, "rewrite_core") and all(
        layer_of(included, folders) <= layer_of(name, folders) for place, folders in maps.items()
        if name.startswith(place + "/") and included.startswith(place + "/"))


def wrong_includes(place):
    """Messages on the table of a README and on includes against it. The linker finds only some of
    them: a header whose functions are inline needs no library."""
    maps = {layered: [folder for folder, _ in layers_of(layered)] for layered in LAYERED}
    if not maps[place]:
        return ["%s/README.md: no table lists its folders as layers" % place]
    wrong = ["%s/README.md: there is no folder %s" % (place, folder) for folder in maps[place]
             if not (ROOT / folder).is_dir()]
    # If an inner folder has a table, too, that one counts.
    inner = tuple(other + "/" for other in LAYERED if other.startswith(place + "/"))
    sources = [name for name in project_files(place + "/*.h", place + "/*.cc")
               if not (inner and name.startswith(inner))]
    return wrong + ["%s:%d: includes %s, which its layer may not use" % (name, number, found.group(1))
                    for name in sources for number, line, _ in lines_of(ROOT / name)
                    for found in [INCLUDE.match(line)]
                    if found and not may_include(name, found.group(1), maps)]


def wrong_links_of_targets(place):
    """Messages on targets of layers that are none, or that link one which is not above them."""
    targets, made, wrong = [target for _, target in layers_of(place)], set(), []
    for name in project_files(place + "/*CMakeLists.txt"):
        text = re.sub(r"#.*", "", (ROOT / name).read_text(encoding="utf-8"))
        for command, target, rest in CMAKE_CALL.findall(text):
            if target in targets:
                made |= {target} if "library" in command else set()
                wrong += ["%s: %s links %s, which is not above it" % (name, target, other)
                          for other in rest.split()
                          if other in targets and targets.index(other) > targets.index(target)]
    return wrong + ["%s/README.md: no CMakeLists.txt makes %s" % (place, target)
                    for target in targets if target not in made]


def wrong_lengths(documents):
    """Messages on documents that have more words than they may, or of which none says how many."""
    wrong = []
    for document in documents:
        name = document.relative_to(ROOT).as_posix()
        words = len(document.read_text(encoding="utf-8").split())
        if words > MOST_WORDS.get(name, 0):
            wrong.append((document, "%s: it has %d words, and may have %d (MOST_WORDS)" % (
                name, words, MOST_WORDS.get(name, 0))))
    return wrong


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
        documents = [ROOT / name for name in project_files("*.md")]
    checks = failed = 0
    repeated, lengths = repeated_figures(documents), wrong_lengths(documents)
    for document in documents:
        some, messages = check(document)
        messages += repeated.get(document, [])
        messages += [message for long, message in lengths if long == document]
        if document == ROOT / "tests" / "README.md":
            messages += unpaired_folders()
        place = document.parent.relative_to(ROOT).as_posix()
        if document.name == "README.md" and place in LAYERED:
            messages += wrong_includes(place)
        if document.name == "README.md" and place in LINKED:
            messages += wrong_links_of_targets(place)
        if document == ROOT / "README.md":
            words = sum(len((ROOT / name).read_text(encoding="utf-8").split())
                        for name in project_files("*.md"))
            if words > MOST_WORDS_IN_ALL:
                messages.append("all documents have %d words together, and may have %d "
                                "(MOST_WORDS_IN_ALL)" % (words, MOST_WORDS_IN_ALL))
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
