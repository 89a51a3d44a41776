"""For which machine a call is that does not say so: what nvidia-smi names, or one that is assumed.

In processes of their own, as nvidia-smi is asked once in each.
"""

import os
import pathlib
import tempfile
import unittest
from unittest import mock

import common

common.set_up()

# Two cards in the words of nvidia-smi, and each question in a file.
NVIDIA_SMI = """#!/bin/sh
echo "$1" >> {asked}
case $1 in
  *=name) echo {name}; echo {name};;
  *=memory*) echo 23034, {capability}; echo 23034, {capability};;
  *) echo GPU-1, [N/A], 4, 8; echo GPU-2, [N/A], 4, 8;;
esac
"""

# The machine of each of four calls, and their warnings.
CALLS = """
import sys, warnings, spillway
graph = open(sys.argv[1], "rb").read()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    reports = [spillway.rewrite(graph, batch_size=8, feeds={"dropout/keep_prob": ()}).report,
               spillway.rewrite(graph, strategy="scope", lb=3).report,
               spillway.simulate(graph, no_budget=True, batch_size=8),
               spillway.explore(graph, sizes="8", feeds={"dropout/keep_prob": ()})]
for report in reports:
    machine = report.hardware.hardware
    print(machine.preset, machine.gpu_memory_bytes, machine.gpu_memory_source or "-",
          machine.h2d_bytes_per_s, report.hardware.preset_assumed)
print(*(type(one.message).__name__ for one in caught))
"""

AUTO = """
import sys, spillway
graph = open(sys.argv[1], "rb").read()
print(spillway.simulate(graph, batch_size=8, hardware="auto").hardware.hardware.preset)
"""


class MachineTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        path = mock.patch.dict(os.environ, PATH="%s:%s" % (folder.name, os.environ["PATH"]))
        path.start()
        self.addCleanup(path.stop)
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # The tests' own hides all GPUs.

    def install(self, name, capability):
        program = self.folder / "nvidia-smi"
        program.write_text(NVIDIA_SMI.format(asked=self.folder / "asked", name=name,
                                             capability=capability), encoding="utf-8")
        program.chmod(0o755)

    def printed(self, code):
        graph = self.folder / "graph.pb"
        graph.write_bytes(common.graph("mnist_deep"))
        done = common.python(code, str(graph))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_a_known_card_is_its_preset(self):
        self.install("NVIDIA L4", "8.9")
        lines = self.printed(CALLS)
        for line in lines[:4]:
            # 23034 MiB less 700 of the driver, less 1536 of TensorFlow; the preset's link.
            self.assertEqual(line, "l4 %d NVIDIA_SMI 25000000000.0 False" % (20798 << 20))
        self.assertEqual(lines[4], "")
        # Three questions, once for all calls.
        self.assertEqual(len((self.folder / "asked").read_text().splitlines()), 3)
        self.assertEqual(self.printed(AUTO), ["l4"])

    def test_another_card_is_like_a_preset_with_its_own_memory_and_link(self):
        self.install("NVIDIA GeForce RTX 3090", "8.6")
        for line in self.printed(CALLS)[:4]:
            self.assertEqual(line, "a10 %d NVIDIA_SMI 12500000000.0 False" % (20798 << 20))
        self.assertEqual(self.printed(AUTO), ["a10"])

    def test_without_nvidia_smi_each_answer_warns(self):
        lines = self.printed(CALLS)
        for line in lines[:4]:
            self.assertEqual(line, "p100_pcie 15955132416 PRESET 12000000000.0 True")
        self.assertEqual(lines[4], " ".join(["AssumedMachineWarning"] * 4))
        with self.assertRaisesRegex(AssertionError, "InvalidOptionError: hardware is auto, and no "
                                    "nvidia-smi here identifies the GPU"):
            self.printed(AUTO)


if __name__ == "__main__":
    unittest.main()
