#!/usr/bin/env python3
"""Tests what finds mistakes in documents: that documents.py, words.py,
integration/document_commands.py and project_files.py see those that are made here, and nothing else."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS / "integration")]

import document_commands  # noqa: E402
import documents  # noqa: E402
import project_files  # noqa: E402
import words  # noqa: E402

TABLE = """| folder | target | contents |
|---|---|---|
| `low/` | `spillway_low` | the lowest |
| `high/deep/` | `spillway_deep` | uses it |
| `high/` | `spillway_high` | uses both |
"""


class Tree(unittest.TestCase):
    """A tree in a folder, in place of the project."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for module in (documents, project_files):
            self.addCleanup(setattr, module, "ROOT", module.ROOT)
            module.ROOT = root
        for layered in documents.LAYERED:
            self.write(layered + "/README.md", TABLE)
            for name in ("low", "high/deep", "high"):
                self.write("%s/%s/x.h" % (layered, name), "")

    def write(self, name, text):
        path = documents.ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


PLAIN = "The planner walks over the slots of a step and picks the gap that ends last.\n"
PLANTED = "It is planned again, and what it reads is kept.\n"


class WordsTest(Tree):
    def over(self, limit):
        counted = words.count(project_files.project_files("*.h", "*.cc", "*.md", "*.py", "*.proto"))
        return {key for key, found in counted.items() if found.is_over(limit)}

    def hits(self, name, source):
        self.write(name, source)
        return {kind: len(found.hits) for (_, kind), found in words.count([name]).items()}

    def test_planted_phrases_are_too_many_and_a_moved_paragraph_is_not(self):
        comment = "// " + PLAIN
        self.write("server/a.h", comment * 200 + "// What it is.\n" * 4)
        self.write("server/b.h", comment * 10)
        limit = 4 / (210 * 15) * 1000
        self.assertEqual(self.over(limit), set())
        self.write("server/a.h", comment * 200)
        self.write("server/b.h", "// What it is.\n" * 4 + comment * 10)
        self.assertEqual(self.over(limit), set())
        self.write("server/b.h", ("// " + PLANTED) * 10 + comment * 10)
        self.assertEqual(self.over(limit), {("server", "comments")})

    def test_where_phrases_are_found(self):
        for name, source, comments, texts in (
                ("server/x.cc", 'F("nobody reads");  // Nobody, 1\'000 times "as it came".', 2, 1),
                ("server/x.cc", '// It hands\n// on what\n// is given.\n#include "nobody.h"', 2, 0),
                ("server/x.cc", 'auto c = \'"\'; R"(nobody)"; // nobody', 1, 1),
                ("tests/x.cc", 'F("nobody");', 0, 0),
                ("proto/x.proto", "// Tells.", 0, 1),
                ("deploy/x.py", '"""Nobody.\n\nWhatever."""\nx = 1  # told', 1, 2),
                ("deploy/x.sh", "echo nobody  # nobody", 1, 0),
                ("deploy/x.md", "What is\nanew", 0, 2)):
            self.assertEqual(self.hits(name, source), {"comments": comments, "texts": texts}, source)


class IncludesTest(Tree):
    def test_what_stands_above_in_the_table_may_be_included(self):
        self.write("server/high/deep/y.cc", '#include "server/low/x.h"\n#include <vector>\n')
        self.write("server/high/y.cc", '#include "server/high/deep/x.h"\n')
        self.write("server/main.cc", '#include "server/high/x.h"\n#include "rewrite_core/a.h"\n')
        self.assertEqual(documents.wrong_includes("server"), [])

    def test_what_stands_below_may_not(self):
        self.write("server/low/y.cc", '\n#include "server/high/deep/x.h"\n')
        self.write("server/high/deep/y.h", '#include "server/high/x.h"\n')
        self.write("server/high/y.h", '#include "server/main.h"\n#include "client_lib/x.h"\n')
        self.assertEqual(
            documents.wrong_includes("server"),
            ["server/%s, which its layer may not use" % text for text in (
                "high/deep/y.h:1: includes server/high/x.h",
                "high/y.h:1: includes server/main.h", "high/y.h:2: includes client_lib/x.h",
                "low/y.cc:2: includes server/high/deep/x.h")])

    def test_the_core_has_no_service_and_the_program_only_its_base(self):
        self.write("rewrite_core/low/y.cc", '#include <grpcpp/grpcpp.h>\n')
        self.assertEqual(len(documents.wrong_includes("rewrite_core")), 1)
        self.write("client_lib/cli/low/y.cc", '#include "rewrite_core/base/a.h"\n')
        self.assertEqual(documents.wrong_includes("client_lib/cli"), [])
        self.write("client_lib/cli/low/y.cc", '#include "rewrite_core/low/x.h"\n')
        self.assertEqual(len(documents.wrong_includes("client_lib/cli")), 1)
        self.assertEqual(documents.wrong_includes("client_lib"), [])

    def test_a_table_names_folders_that_are_there(self):
        self.write("server/README.md", TABLE + "| `away/` | `spillway_away` | nothing |\n")
        self.assertEqual(documents.wrong_includes("server"),
                         ["server/README.md: there is no folder server/away/"])
        self.write("server/README.md", "none\n")
        self.assertEqual(len(documents.wrong_includes("server")), 1)

    def test_targets_link_what_stands_above(self):
        right = ("add_library(spillway_low STATIC x.cc)\n"
                 "spillway_core_library(spillway_deep SOURCES x.cc DEPS spillway_low)\n"
                 "add_library(spillway_high)  # Not spillway_server.\n")
        self.write("server/CMakeLists.txt", right + "target_link_libraries(spillway_high spillway_deep)")
        self.assertEqual(documents.wrong_links_of_targets("server"), [])
        self.write("server/CMakeLists.txt", right.replace("add_library(spillway_high)", "")
                   + "target_link_libraries(spillway_low PUBLIC\n  spillway_deep)")
        self.assertEqual(
            documents.wrong_links_of_targets("server"),
            ["server/CMakeLists.txt: spillway_low links spillway_deep, which is not above it",
             "server/README.md: no CMakeLists.txt makes spillway_high"])

    def test_words_are_counted(self):
        page = documents.ROOT / "README.md"
        self.write("README.md", "word " * documents.MOST_WORDS["README.md"])
        self.assertEqual(documents.wrong_lengths([page]), [])
        self.write("README.md", page.read_text() + "more")
        self.write("NEW.md", "one")
        self.assertEqual(len(documents.wrong_lengths([page, documents.ROOT / "NEW.md"])), 2)


class FilesTest(Tree):
    def test_with_and_without_git_they_are_the_same(self):
        self.write("build/made.md", "")
        self.write("build-x/made.md", "")
        self.write(".cache/made.md", "")
        self.write("server/build/kept.md", "")
        found = project_files.project_files("*.md")
        self.assertEqual(found, sorted([place + "/README.md" for place in documents.LAYERED]
                                       + ["server/build/kept.md"]))
        try:
            for words in (["init", "-q"], ["add", "server", "rewrite_core", "client_lib"]):
                subprocess.run(["git", *words], cwd=documents.ROOT, check=True)
        except OSError:
            self.skipTest("no git here")
        self.assertEqual(project_files.project_files("*.md"), found)


class PictureTest(Tree):
    def test_a_picture_is_what_the_commands_draw(self):
        self.write("a/A.md", "![one](plot/one.svg)\n\n![two](plot/two.svg) [three](three.svg)\n")
        self.write("a/plot/one.svg", "<svg/>")
        self.write("run/one.svg", "<svg/>")
        page, folder = documents.ROOT / "a/A.md", documents.ROOT / "run"
        checks, wrong = document_commands.wrong_pictures(page, folder)
        self.assertEqual((checks, wrong), (2, [(3, "no command here draws two.svg")]))
        self.write("run/two.svg", "<svg/>")
        self.write("run/one.svg", "<svg></svg>")
        checks, wrong = document_commands.wrong_pictures(page, folder)
        self.assertEqual([number for number, _ in wrong], [1, 3])  # Another one, and none kept.


class UpdateTest(Tree):
    PAGE = "# A\n\n```\n$ spillway x \\\n      y\nheads 12 of\n    9.5 GiB\n...\nend 3\n```\n"

    def test_numbers_are_put_in_where_they_stand(self):
        self.write("A.md", self.PAGE)
        page = documents.ROOT / "A.md"
        (number, text, shown), = document_commands.shown_runs(page)
        done = document_commands.update_run(
            page, number, text, shown, "heads 13 of 8.25 GiB\nothers 77\nend 3\n")
        self.assertTrue(done)
        self.assertEqual(page.read_text(), self.PAGE.replace("12", "13").replace("9.5", "8.25"))

    def test_what_differs_by_more_stays(self):
        self.write("A.md", self.PAGE)
        page = documents.ROOT / "A.md"
        (number, text, shown), = document_commands.shown_runs(page)
        for printed in ("tails 13 of 9.5 GiB\nend 3\n", "heads 12 of 9.5 GiB\nothers 77\nend 3\n"):
            self.assertFalse(document_commands.update_run(page, number, text, shown, printed))
            self.assertEqual(page.read_text(), self.PAGE)


class OutputTest(unittest.TestCase):
    def test_lines_are_whole_and_in_order(self):
        printed = "one  two\nthree 12 ms\nfour\nfive\n"
        for shown, same in (
                (["one two", "three 12 ms", "four", "five"], True),
                (["one two", "three", "12 ms", "four five"], True),  # Wrapped.
                (["one two", "...", "five"], True), (["one two", "three ... ms", "..."], True),
                (["...", "four", "..."], True), (["..."], True),
                (["one two", "three 13 ms", "four", "five"], False),
                (["one two", "three 12 ms", "four"], False), (["three 12 ms", "...", "five"], False),
                (["one two", "...", "our", "..."], False), (["...", "four", "...", "three", "..."], False),
                (["one two", "...", "four"], False)):
            self.assertEqual(document_commands.is_printed(shown, printed), same, shown)

    def test_what_is_shown_is_in_the_block_of_its_command(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "A.md")
            page.write_text("```\n$ one \\\n  more\n1\n$ two\n```\n\n```sh\nthree\n```\n")
            self.assertEqual(document_commands.shown_runs(page),
                             [[2, "one \\\n  more", ["1"]], [5, "two", []]])

    def test_what_takes_a_server_or_other_programs_is_not_run(self):
        for text, can in (("build/bin/spillway diff a b | sort", True),
                          ("spillway rewrite a \\\n      -o b", True), ("spillwayd &", False),
                          ("spillway health --server host:1", False), ("rm a", False)):
            self.assertEqual(document_commands.can_be_run(text), can, text)


if __name__ == "__main__":
    unittest.main()
