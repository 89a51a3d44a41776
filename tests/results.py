#!/usr/bin/env python3
"""Prints what tests/run.sh came to: results.py FOLDER. It has steps.txt, `ok NAME` or `FAILED NAME` for
each step, and PRESET.xml and ctest-PRESET.log, as ctest writes them; each entry's output goes to
FOLDER/PRESET/ENTRY.log. The last line is `N passed, N failed[, N skipped]`; exit code 1: one failed."""

import pathlib
import re
import sys
from xml.etree import ElementTree

NOT_PASSED = re.compile(r"^\s+\d+ - (\S+) \((.*)\)$", re.M)  # In ctest's lists, with the reason.
FAILURE = re.compile(r"^(?:(?:FAILED|FAIL|ERROR)\b.*|not ok.*|\[  FAILED  \].*|.*: Failure)$", re.M)
SKIPPED = re.compile(r"^skipped: (.*)", re.M)
CASE_SKIPPED = re.compile(r": Skipped\n(.*)\n(?:(?!\[).*\n)*\[  SKIPPED \] (\S+) \(")


class Entry:
    def __init__(self, folder, preset, case, why):
        self.name, self.why = "%s/%s" % (preset, case.get("name")), why
        self.seconds = float(case.get("time") or 0)
        self.output = case.findtext("system-out") or ""
        self.skipped = why in ("Skipped", "Disabled")
        self.failed = bool(why) and not self.skipped
        self.log = folder / (self.name + ".log")
        self.log.parent.mkdir(exist_ok=True)
        self.log.write_text(self.output, encoding="utf-8")

    def failures(self):
        """Of a test that hung, the case that did not end comes last."""
        lines = [found.group(0) for found in FAILURE.finditer(self.output)][:20]
        begun = re.findall(r"^\[ RUN      \] .*", self.output, re.M)
        return (lines or self.output.splitlines()[-10:]) + begun[-1:] * (self.why == "Timeout")

    def skips(self):
        whys = SKIPPED.findall(self.output)
        whys += ["%s: %s" % (case, why) for why, case in CASE_SKIPPED.findall(self.output)]
        return whys or [self.why] * self.skipped


def entries_of(folder):
    for path in sorted(folder.glob("*.xml")):
        log = (folder / ("ctest-%s.log" % path.stem)).read_text(encoding="utf-8", errors="replace")
        whys = dict(NOT_PASSED.findall(log))
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            yield Entry(folder, path.stem, case, whys.get(case.get("name")))


def main():
    folder = pathlib.Path(sys.argv[1])
    steps = [line.split(" ", 1) for line in (folder / "steps.txt").read_text().splitlines()]
    entries = list(entries_of(folder))
    bad = [entry for entry in entries if entry.failed]
    # A step of tests failed because entries did, which are counted, or before there were any.
    broken = [name for state, name in steps if state != "ok"
              and not any(name == "Tests (%s)" % entry.log.parent.name for entry in bad)]
    print("\n== The slowest")
    for entry in sorted(entries, key=lambda entry: -entry.seconds)[:12]:
        print("%8.1f s  %s" % (entry.seconds, entry.name))
    print("\n== Skipped, as entries or parts of them")
    for entry in entries:
        for why in [] if entry.failed else entry.skips():
            print("skipped: %s: %s" % (entry.name, why))
    print("\n== Failed" if bad or broken else "")
    for name in broken:
        print("%s (what it said stands above; logs: %s)" % (name, folder))
    for entry in bad:
        print("\n  ".join(["%s: %s (%s)" % (entry.name, entry.why, entry.log)]
                          + [line[:500] for line in entry.failures()]))
    failed, skipped = len(bad) + len(broken), sum(entry.skipped for entry in entries)
    passed = len(entries) - len(bad) - skipped + sum(state == "ok" for state, _ in steps)
    print("\n%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
