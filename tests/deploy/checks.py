"""How the Python tests of deploy count: as checks.sh does."""

failures = []
passed = 0
skipped = 0


def check(name, ok, problem=""):
    """One check; `problem` is shown if it is not `ok`."""
    global passed
    if ok:
        passed += 1
        print("ok      " + name, flush=True)
    else:
        failures.append(name)
        print("FAILED  %s\n        %s" % (name, problem), flush=True)


def skip(why):
    """Counts a test that is not run here."""
    global skipped
    skipped += 1
    print("skipped: " + why, flush=True)


def add(more_passed, more_failures):
    """Adds the counts of another process."""
    global passed
    passed += more_passed
    failures.extend(more_failures)


def finish():
    """Prints the summary; the exit code."""
    print("\n%d passed, %d failed%s" % (
        passed, len(failures), ", %d skipped" % skipped if skipped else ""))
    return 1 if failures else 0
