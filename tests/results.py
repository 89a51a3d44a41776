#!/usr/bin/env python3
"""Prints what tests/run.sh came to: results.py FOLDER, which has steps.txt (`ok NAME` or `FAILED NAME`
for each step) and PRESET.xml as `ctest --output-junit` writes it. Each entry's output goes to
FOLDER/PRESET/ENTRY.log. The last line is `N passed, N failed[, N skipped]`; exit code 1: one failed."""

import pathlib
import re
import sys
from xml.etree import ElementTree

FAILURE = re.compile(r"^(?:(?:FAILED|FAIL|ERROR)\b.*|not ok.*|\[  FAILED  \].*|.*: Failure)$", re.M)
SKIPPED = re.compile(r"^skipped: .*|^\[  SKIPPED \] [^(,]*(?= \()", re.M)
SLOWEST = 12
MOST_LINES = 20


class Entry:
    def __init__(self, folder, preset, case):
        self.name = case.get("name")
        self.seconds = float(case.get("time") or 0)
        self.failed = case.find("failure") is not None
        self.skipped = case.find("skipped") is not None
        self.output = case.findtext("system-out") or ""
        self.log = folder / preset / (self.name + ".log")
        self.log.parent.mkdir(exist_ok=True)
        self.log.write_text(self.output, encoding="utf-8")
        why = case.find("failure" if self.failed else "skipped")
        self.why = why.get("message") if why is not None else ""

    def failures(self):
        """Of a test that hung, the case that did not end comes last."""
        lines = [found.group(0) for found in FAILURE.finditer(self.output)][:MOST_LINES]
        lines = lines or self.output.splitlines()[-10:]
        begun = re.findall(r"^\[ RUN      \] .*", self.output, re.M)
        return lines + (begun[-1:] if "Timeout" in self.why else [])

    def skips(self):
        lines = [found.group(0) for found in SKIPPED.finditer(self.output)]
        return lines or ([self.why] if self.skipped else [])


def main():
    folder = pathlib.Path(sys.argv[1])
    steps = [line.split(" ", 1) for line in (folder / "steps.txt").read_text().splitlines()]
    entries = [Entry(folder, path.stem, case) for path in sorted(folder.glob("*.xml"))
               for case in ElementTree.parse(path).getroot().iter("testcase")]
    print("\n== The slowest")
    for entry in sorted(entries, key=lambda entry: -entry.seconds)[:SLOWEST]:
        print("%8.1f s  %s/%s" % (entry.seconds, entry.log.parent.name, entry.name))
    print("\n== Skipped")
    for entry in entries:
        for line in [] if entry.failed else entry.skips():
            print("%s: %s" % (entry.name, line))
    bad = [entry for entry in entries if entry.failed]
    broken = [name for state, name in steps if state != "ok" and not name.startswith("Tests")]
    missing = [name for state, name in steps if state != "ok" and name.startswith("Tests")
               and not any(entry.log.parent.name in name for entry in bad)]
    if bad or broken or missing:
        print("\n== Failed")
    for name in broken + missing:
        print("%s (its output stands above; logs: %s)" % (name, folder))
    for entry in bad:
        print("%s/%s: %s (%s)" % (entry.log.parent.name, entry.name, entry.why, entry.log))
        print("\n".join("  " + line[:500] for line in entry.failures()))
    failed = len(bad) + len(broken) + len(missing)
    skipped = sum(entry.skipped and not entry.failed for entry in entries)
    passed = len(entries) - len(bad) - skipped + sum(state == "ok" for state, _ in steps)
    print("\n%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
