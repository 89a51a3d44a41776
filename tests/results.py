#!/usr/bin/env python3
"""Prints what tests/run.sh came to: results.py FOLDER. It has steps.txt, `ok NAME` or `FAILED NAME` for
each step, and PRESET.xml and ctest-PRESET.log, as ctest writes them; each entry's output goes to
FOLDER/PRESET/ENTRY.log. The last line is `N passed, N failed[, N skipped]`; exit code 1: one failed."""

import collections
import pathlib
import re
import sys
from xml.etree import ElementTree

NOT_PASSED = re.compile(r"^\s+\d+ - (\S+) \((.*)\)$", re.M)  # In ctest's lists, with the reason.
FAILURE = re.compile(r"^(?:(?:FAILED|FAIL|ERROR)\b.*|not ok.*|\[  FAILED  \].*|.*: Failure)$", re.M)
SKIPPED = re.compile(r"^skipped: (.*)", re.M)
CASE_SKIPPED = re.compile(r": Skipped\n(.*)\n(?:(?!\[).*\n)*\[  SKIPPED \] (\S+) \(")
Entry = collections.namedtuple("Entry", "name why seconds output log")


def entries_of(folder):
    for path in sorted(folder.glob("*.xml")):
        said = (folder / ("ctest-%s.log" % path.stem)).read_text(encoding="utf-8", errors="replace")
        whys = dict(NOT_PASSED.findall(said))
        (folder / path.stem).mkdir(exist_ok=True)
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name, output = case.get("name"), case.findtext("system-out") or ""
            log = folder / path.stem / (name + ".log")
            log.write_text(output, encoding="utf-8")
            yield Entry("%s/%s" % (path.stem, name), whys.get(name), float(case.get("time") or 0),
                        output, log)


def failures_of(entry):
    """Of a test that hung, the case that did not end comes last."""
    lines = [found.group(0)[:500] for found in FAILURE.finditer(entry.output)][:20]
    begun = re.findall(r"^\[ RUN      \] .*", entry.output, re.M)
    return (lines or entry.output.splitlines()[-10:]) + begun[-1:] * (entry.why == "Timeout")


def main():
    folder = pathlib.Path(sys.argv[1])
    steps = [line.split(" ", 1) for line in (folder / "steps.txt").read_text().splitlines()]
    entries = list(entries_of(folder))
    skipped = [entry for entry in entries if entry.why in ("Skipped", "Disabled")]
    bad = [entry for entry in entries if entry.why and entry not in skipped]
    # A step of tests failed because entries did, which are counted, or before there were any.
    broken = [name for state, name in steps if state != "ok"
              and not any(name == "Tests (%s)" % entry.log.parent.name for entry in bad)]
    print("\n== The slowest")
    for entry in sorted(entries, key=lambda entry: -entry.seconds)[:12]:
        print("%8.1f s  %s" % (entry.seconds, entry.name))
    print("\n== Skipped, as entries or parts of them")
    for entry in entries:
        whys = SKIPPED.findall(entry.output)
        whys += ["%s: %s" % (case, why) for why, case in CASE_SKIPPED.findall(entry.output)]
        for why in [] if entry in bad else whys or [entry.why] * (entry in skipped):
            print("skipped: %s: %s" % (entry.name, why))
    print("\n== Failed" if bad or broken else "")
    for name in broken:
        print("%s (what it said stands above; logs: %s)" % (name, folder))
    for entry in bad:
        print("\n  ".join(["%s: %s (%s)" % (entry.name, entry.why, entry.log)] + failures_of(entry)))
    passed, failed = len(entries) - len(bad) - len(skipped), len(bad) + len(broken)
    print("\n%d passed, %d failed%s" % (passed + sum(state == "ok" for state, _ in steps), failed,
                                        ", %d skipped" % len(skipped) if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
