"""The program `spillway`, which the wheel brings: as a command, and as `python -m spillway`."""

import os
import pathlib
import shutil
import sys
from typing import Optional


def _program() -> Optional[str]:
    """The wheel's, else (for a package without one, such as Debian's) that on the PATH."""
    own = pathlib.Path(__file__).resolve().with_name("bin") / "spillway"
    if own.exists():
        return str(own)
    found = shutil.which("spillway")
    # The command of a virtual environment is this file again.
    if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]):
        return None
    return found


def main() -> None:
    """Becomes the program, with the same arguments."""
    program = _program()
    if program is None:
        sys.exit("spillway: this package was built without the program spillway; install a wheel of "
                 "deploy/portable, or build the program and then the package again")
    os.execv(program, ["spillway", *sys.argv[1:]])


if __name__ == "__main__":
    main()
