#!/usr/bin/env python3
"""Counts phrases that plain English of the field has better words for, in each folder's comments and
in the texts that users read: documents, strings of programs, comments of the API. One phrase is no
mistake, so there is a limit per 1,000 words, which edits move between files without reaching it.

    tests/words.py [--list FOLDER...]    the phrases found there, FILE:LINE: text; else what is over

Prints last `N passed, N failed`, of folders. Exit code 1: one has more than its limit; 2: bad usage.
"""

import argparse
import bisect
import collections
import io
import re
import sys
import tokenize

import project_files

# The phrase, and what says it better.
PHRASES = {
    r"(?:run|runs|ran|running) again": "recompute",
    r"nobody|lest": "no node, unused",
    r"as (?:it|they) (?:came|comes?)": "unchanged",
    r"(?:tells?|told|telling)": "report, print, return, distinguish",
    r"what (?:is|are|was|were|it|they|an?|the|has|does|needs|takes|only|may|can|follows|comes|leads"
    r"|reads|fits|runs)": "a noun: the inputs, the rest",
    r"where (?:it|that|they|this|these|there)": "if, when",
    r"(?:un)?stead(?:y|ier|iest)": "robust",
    r"dear(?:er|est|ly)?": "expensive, slow",
    r"anew|mend(?:s|ed|ing)?": "again, fix",
    r"hand(?:s|ed|ing)? (?:it |its \w+ )?on": "forward",
    r"levers?": "action, method",
    r"there (?:is|are) (?:one|none|no other)": "the noun, if any",
    r"whatever": "any",
}
ANY_PHRASE = re.compile(r"\b(?:%s)\b" % "|".join(PHRASES), re.IGNORECASE)

# Phrases per 1,000 words: a tenth more than there were when the comments of a folder, or its texts,
# were last edited for them.
LIMITS = {
    (".", "comments"): 0.01,
    (".", "texts"): 1.76,
    ("client_lib", "comments"): 0.19,
    ("client_lib", "texts"): 0.63,
    ("deploy", "comments"): 1.43,
    ("deploy", "texts"): 1.86,
    ("proto", "comments"): 0.01,
    ("proto", "texts"): 0.53,
    ("rewrite_core", "comments"): 0.02,
    ("rewrite_core", "texts"): 0.72,
    ("server", "comments"): 0.01,
    ("server", "texts"): 1.32,
    ("tests", "comments"): 0.70,
    ("tests", "texts"): 3.42,
}
SPARE = 3  # More, so that a phrase in a folder of few words fails nothing.

CPP = re.compile(r'//(?P<comment>[^\n]*)|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"'
                 r'|"(?P<string>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
HASH = re.compile(r"(?:^|\s)#(?P<comment>[^\n]*)", re.MULTILINE)
# Made from the API's comments; and files with the phrases themselves.
LEFT_OUT = ("client_lib/python/spillway/messages.py", "tests/words.py", "tests/documents_test.py")


def pieces(name, source):
    """(is a text that users read, line, text) of a file."""
    is_test = name.startswith("tests/")
    if name.endswith(".md"):
        for number, line in enumerate(source.splitlines(), 1):
            yield True, number, line
    elif name.endswith((".h", ".cc", ".inc", ".proto")):
        for match in CPP.finditer(re.sub(r"^#include.*", "", source, flags=re.MULTILINE)):
            line = source.count("\n", 0, match.start()) + 1
            if match["comment"] is not None:
                yield name.endswith(".proto"), line, match["comment"]
            elif not is_test:
                yield True, line, match["raw"] or match["string"] or ""
    elif name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                is_text = token.type == tokenize.STRING and not is_test
                for number, line in enumerate(token.string.splitlines(), token.start[0]):
                    yield is_text, number, line.strip(" #")
    else:
        for match in HASH.finditer(source):
            yield False, source.count("\n", 0, match.start("comment")) + 1, match["comment"]


class Count:
    """Of one folder's comments, or of its texts."""

    def __init__(self):
        self.words, self.hits = 0, []

    def add(self, name, found):
        """`found`: (line, text) in order; a phrase may continue on the next line."""
        starts, joined = [], ""
        for _, text in found:
            starts.append(len(joined))
            joined += text.strip() + " "
        self.words += len(joined.split())
        for match in ANY_PHRASE.finditer(joined):
            line = found[bisect.bisect_right(starts, match.start()) - 1][0]
            around = joined[max(0, match.start() - 40):match.end() + 40]
            self.hits.append("%s:%d: %s" % (name, line, " ".join(around.split())))

    def rate(self):
        """Phrases per 1,000 words."""
        return 1000 * len(self.hits) / max(1, self.words)

    def is_over(self, limit):
        """Whether there are more than a limit per 1,000 words."""
        return len(self.hits) > limit * self.words / 1000 + SPARE


def count(names):
    """{(folder, "comments" or "texts"): Count}."""
    counts = collections.defaultdict(Count)
    for name in names:
        folder = name.split("/")[0] if "/" in name else "."
        found = {True: [], False: []}
        source = (project_files.ROOT / name).read_text(encoding="utf-8")
        for is_text, line, text in pieces(name, source):
            found[is_text].append((line, text))
        for is_text, kind in ((True, "texts"), (False, "comments")):
            counts[folder, kind].add(name, found[is_text])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--list", nargs="+", metavar="FOLDER", default=[],
                        help="print the phrases that are found there")
    listed = [folder.rstrip("/") for folder in parser.parse_args().list]
    names = [name for name in project_files.project_files(
        "*.md", "*.h", "*.cc", "*.inc", "*.proto", "*.py", "*.sh", "*CMakeLists.txt", "*.cmake")
             if name not in LEFT_OUT and not name.startswith("tests/graphs/")]
    failed, counts = 0, count(names)
    unknown = set(listed) - {folder for folder, _ in counts}
    if unknown:
        parser.error("there is no folder %s; give some of %s" % (
            ", ".join(sorted(unknown)), ", ".join(sorted({folder for folder, _ in counts}))))
    for (folder, kind), found in sorted(counts.items()):
        if folder in listed:
            print("\n".join(found.hits))
        limit = LIMITS.get((folder, kind), 0)
        is_over = found.is_over(limit)
        if listed or is_over:
            print("%s, %s: %d phrases in %d words, %.2f per 1,000; the limit is %.2f"
                  % (folder, kind, len(found.hits), found.words, found.rate(), limit))
        failed += is_over
    if failed and not listed:
        print("tests/words.py --list FOLDER prints them; PHRASES in it has better words.")
    print("%d passed, %d failed" % (len(counts) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
