"""A type checker on a program that uses the package: mypy --strict, as its users run it.

mypy is installed into an environment of its own; if pip cannot get it, the test is skipped.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import common

common.set_up()

# Lines that end in `# wrong: WORDS` have an error with these words, and no others have one.
PROGRAM = '''
from typing import List, Optional

import spillway
from spillway.messages import DeviceForecast


def plan(graph: bytes, batch: int) -> int:
    result = spillway.rewrite(graph, strategy="level", batch_size=batch, timeout="30s",
                              gpu_memory_bytes="16GiB", feeds={"images": "8,224,224,3"})
    report = result.report
    if report is None:
        return 0
    forecast = report.forecast_after
    peaks: List[int] = [] if forecast is None else [gpu.peak_bytes for gpu in forecast.devices]
    slow: Optional[float] = report.budget.max_slowdown if report.budget else None
    print(slow, report.fits[0].fit == "FITS", spillway.__version__)
    return max(peaks)


def ask(graph: bytes) -> float:
    client = spillway.Client(["a:7070", "b:7070"], tls_ca="ca.pem", hedge_after=0.5)
    fit = client.simulate(graph, batch_size=8, memory=True, hardware="p100_pcie")
    sizes = client.explore(graph, sizes=range(8, 64, 8), swapping=True,
                           on_size=lambda size: print(size.size + 1))
    found = spillway.inspect(graph, on_tensors=lambda tensors: print(tensors[0].tensor))
    names: List[str] = [count.name for count in found.op_types]
    swaps = spillway.diff(graph, client.strip(graph).graph_def).swaps
    print(names, swaps[0].swap_out, fit.memory[0].timeline[0].bytes)
    best: Optional[int] = sizes.largest_fitting_size_swapped
    applied = spillway.apply(graph, spillway.Plan(b""), batch_size=8)
    print(best, applied.plan, spillway.capabilities().limits)
    return sizes.sizes[0].sizes_per_s or 0.0


def devices(forecasts: List[DeviceForecast]) -> str:
    return forecasts[0].device


spillway.rewrite(b"", batch_sise=3)  # wrong: "batch_sise"
spillway.rewrite(b"", batch_size=[3])  # wrong: incompatible type
spillway.rewrite(b"", strategy="levels")  # wrong: incompatible type
spillway.rewrite(b"", planning_effort="hihg")  # wrong: incompatible type
spillway.simulate(b"", lb=3)  # wrong: "lb"
spillway.strip(b"", batch_size=3)  # wrong: "batch_size"
spillway.apply(b"", "", inline_calls="auto")  # wrong: "inline_calls"
spillway.Client(retries="3")  # wrong: incompatible type
spillway.Client().rewrite(b"", server="a:1")  # wrong: "server"
spillway.capabilities(batch_size=3)  # wrong: "batch_size"
spillway.simulate(b"").forecast.fit  # wrong: "None"
spillway.inspect(b"").node_count + "1"  # wrong: Unsupported operand
spillway.inspect(b"").nodes  # wrong: no attribute
'''


class TypingTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([sys.executable, "-m", "venv", str(cls.folder / "venv")], check=True,
                       timeout=common.PATIENCE_S)
        cls.python = str(cls.folder / "venv" / "bin" / "python")
        done = subprocess.run(
            [cls.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
             str(pathlib.Path(__file__).with_name("mypy.txt"))], text=True, capture_output=True,
            timeout=common.PATIENCE_S, check=False)
        if done.returncode:
            raise unittest.SkipTest("pip cannot get mypy here: types are not checked")

    def mypy(self, *arguments, cwd=None):
        done = subprocess.run(
            [self.python, "-m", "mypy", "--no-error-summary", "--no-color-output",
             "--cache-dir=" + str(self.folder / "cache"), *arguments], text=True,
            capture_output=True, timeout=common.PATIENCE_S, check=False, cwd=cwd or self.folder,
            env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(common.PACKAGE)})
        self.assertEqual(done.stderr, "")
        return done.stdout.splitlines()

    def test_a_strict_program(self):
        """On the oldest Python that the package is for, and on the newest that this mypy knows."""
        (self.folder / "program.py").write_text(PROGRAM)
        wanted = {number: line.partition("# wrong: ")[2]
                  for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong: " in line}
        self.assertGreater(len(wanted), 10)
        for version in ("3.9", "3.12"):
            found = {}
            for line in self.mypy("--strict", "--follow-imports=silent",
                                  "--python-version=" + version, "program.py"):
                match = re.match(r"program\.py:(\d+): error: (.*)", line)
                if match:
                    found.setdefault(int(match.group(1)), match.group(2))
            self.assertEqual(set(found), set(wanted), (version, found))
            for number, words in wanted.items():
                self.assertIn(words, found[number])

    def test_the_package_itself(self):
        """TensorFlow, absl and Horovod are not there, and count as Any."""
        files = [str(path) for path in sorted((common.PACKAGE / "spillway").glob("**/*.py"))]
        self.assertGreater(len(files), 30)
        self.assertEqual(self.mypy("--python-version=3.9", "--ignore-missing-imports", *files,
                                   cwd=common.PACKAGE), [])


if __name__ == "__main__":
    unittest.main()
