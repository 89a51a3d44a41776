"""spillway.plot: pictures as text and as files, in process and on a server."""

import json
import os
import pathlib
import stat
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

import common
import spillway

SVG = "{http://www.w3.org/2000/svg}"
# ResNet-50 does not fit the default machine, and does with swaps.
GRAPH = "resnet50_tf1"


def texts(svg):
    """The texts in a picture."""
    root = xml.etree.ElementTree.fromstring(svg.encode())
    return [text.text for text in root.iter(SVG + "text")]


def peaks(svg):
    """The peaks that are marked in it, in bytes."""
    root = xml.etree.ElementTree.fromstring(svg.encode())
    return [int(mark.get("data-peak-bytes")) for mark in root.iter(SVG + "circle")]


class PlotTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.graph = common.graph(GRAPH)
        cls.swapped = spillway.rewrite(cls.graph).graph_def

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name):
        return pathlib.Path(self.folder.name, name)

    def test_before_and_after_are_what_simulate_says(self):
        picture = spillway.plot(self.swapped)
        reports = [spillway.simulate(graph, memory=True, trace=True, execution="synchronous")
                   for graph in (self.graph, self.swapped)]
        self.assertEqual(peaks(picture), [report.memory[0].peak_bytes for report in reports])
        self.assertIn("synchronous: memory is taken when an operation runs", texts(picture))
        # However it is asked for.
        self.assertEqual(spillway.plot(self.swapped, before=self.graph), picture)
        self.assertEqual(spillway.plot(reports[1], before=reports[0]), picture)
        self.assertEqual(peaks(spillway.plot(self.graph)), peaks(picture))

    def test_the_program_draws_the_same(self):
        self.file("swapped.pb").write_bytes(self.swapped)
        drawn = common.command("plot", str(self.file("swapped.pb")), "-o", "-", "--title", "x")
        self.assertEqual(spillway.plot(self.swapped, title="x"), drawn.decode())

    def test_on_a_server(self):
        with common.server() as address:
            client = spillway.Client(address, retries=0)
            self.assertEqual(client.plot(self.swapped), spillway.plot(self.swapped))

    def test_files(self):
        for name, start in (("a.svg", "<?xml"), ("a.html", "<!DOCTYPE html>"), ("a.json", "{")):
            picture = spillway.plot(self.swapped, self.file(name), title="</title><script>")
            self.assertEqual(self.file(name).read_text("utf-8"), picture)
            self.assertTrue(picture.startswith(start), name)
            self.assertNotIn("</title><script>", picture)
        trace = json.loads(self.file("a.json").read_text("utf-8"))
        self.assertEqual(trace["otherData"]["steps"][0]["execution"], "launched ahead")
        copies = [event for event in trace["traceEvents"] if event.get("cat") == "copy out"]
        forecast = spillway.simulate(self.swapped).forecast.devices[0]
        self.assertEqual(sum(copy["args"].get("bytes", 0) for copy in copies),
                         forecast.copy_out_bytes)
        with self.assertRaisesRegex(ValueError, "ends in .svg, .html, .png"):
            spillway.plot(self.swapped, self.file("a.jpg"))
        with self.assertRaisesRegex(spillway.InvalidOptionError, "format: 'gif' is none of html, png, svg"):
            spillway.plot(self.swapped, format="gif")

    def test_png_is_another_programs(self):
        with mock.patch.dict(os.environ, {"PATH": self.folder.name + ":relative"}):
            with self.assertRaisesRegex(spillway.InvalidOptionError, "librsvg2-bin"):
                spillway.plot(self.swapped, format="png", plan=False)
            converter = self.file("rsvg-convert")
            converter.write_text("#!/bin/sh\nprintf '\\211PNG '; read -r first; echo \"$first\"\n")
            converter.chmod(stat.S_IRWXU)
            png = spillway.plot(self.swapped, self.file("a.png"))
            self.assertTrue(png.startswith(b"\x89PNG <?xml"), png[:20])
            self.assertEqual(self.file("a.png").read_bytes(), png)
            converter.write_text("#!/bin/sh\nexit 1\n")
            with self.assertRaisesRegex(spillway.InternalError, "has made no PNG"):
                spillway.plot(self.swapped, format="png")

    def test_throughput(self):
        graph = common.graph("resnet50_free")
        options = {"sizes": [50, 100], "no_budget": True}
        picture = spillway.plot(graph, throughput=True, **options)
        self.assertIn("examples in a batch", texts(picture))
        self.assertEqual(spillway.plot(spillway.explore(graph, **options)), picture)

    def test_one_graph_alone(self):
        alone = spillway.plot(self.graph, plan=False)
        self.assertEqual(len(peaks(alone)), 1)
        self.assertFalse([text for text in texts(alone) if text.startswith("before")])
        self.assertIn("as it is", texts(spillway.plot(self.graph, gpu_memory_bytes=1 << 30))[0])
        self.assertIn("synchronous: memory is taken when an operation runs", texts(alone))
        ahead = spillway.plot(self.graph, plan=False, execution="launched_ahead")
        self.assertIn("launched ahead, as TensorFlow runs it: memory is taken when a kernel is "
                      "launched", texts(ahead))

    def test_mistakes(self):
        with self.assertRaisesRegex(TypeError, "plot has no option lb"):
            spillway.plot(self.graph, lb=3)
        with self.assertRaisesRegex(TypeError, "an answer of simulate or explore"):
            spillway.plot({"nodes": 3})
        with self.assertRaisesRegex(spillway.InvalidOptionError, "no memory over time"):
            spillway.plot(spillway.simulate(self.graph))
        with self.assertRaises(spillway.InvalidGraphError):
            spillway.plot(b"no graph")
        with self.assertRaises(OSError):
            spillway.plot(self.swapped, "/nowhere/a.svg")
        with self.assertRaises(spillway.InvalidOptionError):
            spillway.plot(self.graph, plan=False, execution="backwards")


if __name__ == "__main__":
    common.set_up()
    unittest.main()
