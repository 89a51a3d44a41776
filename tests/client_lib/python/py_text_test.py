"""What people read: print, repr, a notebook; and answers as numbers."""

import base64
import copy
import dataclasses
import html.parser
import json
import pathlib
import pickle
import re
import subprocess
import tempfile
import types
import unittest
import xml.etree.ElementTree
from unittest import mock

import common

common.set_up()
# pylint: disable=wrong-import-position
import spillway
from spillway import _size, messages

# Of flags that are not spelled like theirs.
_KEYWORDS = {"feed": "feeds"}
# Of mnist_deep: with it, all sizes are known.
STEP = {"batch_size": 8, "feeds": {"dropout/keep_prob": 0.5}}


class Tags(html.parser.HTMLParser):
    """The tags of a view, and whether they nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


class ResultTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.graph = common.graph("resnet50_tf1", shapes=True)
        # By swaps alone, for there to be many.
        cls.result = spillway.rewrite(cls.graph, gpu_memory_bytes="8GiB", hardware="p100_pcie",
                                      recompute="off", save_plan=True, patch=True)
        cls.report = cls.result.report

    def test_repr_is_one_short_line(self):
        for value in (self.result, self.report, self.result.plan, self.result.patch,
                      spillway.Client(), spillway.Client(["a:1", "b:2"]),
                      self.report.forecast_after, self.report.fits[0], self.report.swaps[0],
                      spillway.simulate(self.graph, memory=True), spillway.inspect(self.graph),
                      spillway.diff(self.graph, self.result.graph_def), spillway.capabilities()):
            text = repr(value)
            self.assertNotIn("\n", text)
            self.assertLess(len(text), 2000, text)
            self.assertNotIn(" object at 0x", text)
        self.assertEqual(repr(self.result), "<RewriteResult: %s>" % self.report.summary)
        self.assertRegex(repr(self.result.plan), r"^<Plan of the strategy budget for the graph "
                         r"[0-9a-f]{12}...: %d swaps, \d+ bytes>$" % len(self.report.swaps))
        self.assertIn("new_nodes=<%d>" % len(self.result.patch.new_nodes), repr(self.result.patch))
        self.assertEqual(repr(spillway.Plan(b"\xff")), "<Plan: no plan, of 1 byte>")

    def test_a_result_that_is_none(self):
        with self.assertWarns(spillway.SpillwayWarning):
            result = spillway.rewrite(self.graph, server="127.0.0.1:1", retries=0, fail_open=True)
        for text in (str(result), repr(result), result._repr_html_()):
            self.assertIn("not rewritten: ", text)
            self.assertIn("127.0.0.1:1", text)

    def test_a_notebook_shows_what_a_decision_needs(self):
        view = self.result._repr_html_()
        text = "\n".join(Tags(view).text)
        for word in (str(self.report), "largest swaps"):
            self.assertIn(word, text)
        ten = sorted((swap.size_bytes for swap in self.report.swaps), reverse=True)[:10]
        shown = re.findall(r"<td>([^<]+)</td><td>([0-9.]+ [KMG]iB)</td><td>(\d+)</td><td>", view)
        sizes = {swap.tensor: swap.size_bytes for swap in self.report.swaps}
        self.assertEqual([sizes[tensor] for tensor, _, _ in shown], ten)
        for tensor, size, _ in shown:
            self.assertEqual(size, _size.format_bytes(sizes[tensor]))
        picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', view).group(1)
        drawn = xml.etree.ElementTree.fromstring(base64.b64decode(picture))
        peaks = [mark.get("data-peak-bytes") for mark in drawn.iter() if mark.get("data-peak-bytes")]
        self.assertEqual(len(peaks), 2)  # Before and after, on the machine of the rewrite.
        self.assertLessEqual(int(peaks[1]), self.report.fits[0].budget_bytes)

    def test_names_of_a_graph_are_no_markup(self):
        evil = "<script>alert(1)</script>&"
        report = dataclasses.replace(
            self.report, summary=evil, warnings=(messages.ReportWarning(message=evil),),
            swaps=(messages.TensorSwap(tensor=evil, size_bytes=5, device=evil),))
        view = report._repr_html_()
        self.assertLessEqual(Tags(view).tags, {"p", "b", "pre", "table", "tr", "th", "td"})
        self.assertIn("&lt;script&gt;", view)
        report = messages.SimulateReport(targets=(evil,))
        self.assertEqual(Tags(report._repr_html_()).tags, {"pre"})

    def test_a_picture_joins_where_one_can_be_drawn(self):
        def plot(graph, file, **step):
            self.assertEqual((graph, step["hardware"]), (self.result.graph_def, "p100_pcie"))
            with open(file, "w", encoding="utf-8") as out:
                out.write("<svg xmlns='http://www.w3.org/2000/svg'/>")

        def broken(*_, **__):
            raise RuntimeError("no")

        for draw, images in ((plot, 1), (broken, 0)):
            module = types.SimpleNamespace(plot=draw)
            with mock.patch.object(spillway, "_plot", module, create=True):
                view = self.result._repr_html_()
            self.assertEqual(view.count("data:image/svg+xml;base64,"), images)


class ProgramTest(unittest.TestCase):
    """Python prints the same as the program, with keywords for flags."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.graph = self.file("graph.pb", common.graph("cond_v1", shapes=True))

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def compare(self, answer, *arguments, codes=(0,), order=list):
        done = subprocess.run(
            [str(common.BUILD / "bin" / "spillway"), *map(str, arguments)], text=True, check=False,
            capture_output=True, timeout=common.PATIENCE_S)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertEqual(order(self.words(str(answer))),
                         order(self.words(done.stdout or done.stderr)))

    def words(self, text):
        # The program's own hint.
        text = text.replace("  (--verbose prints the details)\n", "")
        # A keyword has its value behind `is`.
        text = text.replace("recompute is all", "recompute all")
        # A keyword for a flag, after which lines are wrapped elsewhere.
        return re.sub(r"--([a-z0-9-]+)", lambda flag: _KEYWORDS.get(
            flag.group(1), flag.group(1).replace("-", "_")), text).split()

    def test_rewrites(self):
        for keywords, more in (
                ({"strategy": "scope", "lb": 2}, ["--strategy", "scope", "--lb", 2]),
                ({"strategy": "level", "swapout_threshold": 4, "swapin_ahead": 2},
                 ["--strategy", "level", "--swapout-threshold", 4, "--swapin-ahead", 2]),
                ({"gpu_memory_bytes": "110MiB"}, ["--gpu-memory-bytes", "110MiB"]),
                ({"hardware": "v100_nvlink2"}, ["--hardware", "v100_nvlink2"])):
            result = spillway.rewrite(self.graph.read_bytes(), batch_size=256, **keywords)
            self.assertEqual(str(result), str(result.report))
            self.assertTrue(str(result).startswith("spillway: "))
            self.compare(result, "rewrite", self.graph, "-o", self.folder / "out.pb",
                         "--batch-size", 256, *more)
        out = self.file("out.pb", spillway.rewrite(
            self.graph.read_bytes(), strategy="scope", batch_size=256).graph_def)
        self.compare(spillway.strip(out.read_bytes()), "strip", out, "-o", self.folder / "back.pb")

    def test_answers(self):
        graph = self.graph.read_bytes()
        self.compare(spillway.inspect(graph), "inspect", self.graph)
        out = self.file("out.pb", spillway.rewrite(graph, strategy="scope").graph_def)
        self.compare(spillway.diff(graph, out.read_bytes()), "diff", self.graph, out, codes=(1,))
        self.compare(spillway.diff(graph, graph), "diff", self.graph, self.graph)
        self.compare(spillway.capabilities(), "capabilities")
        for keywords, more in (({"batch_size": 256}, ["--batch-size", 256]),
                               ({"gpu_memory_bytes": "1MiB"}, ["--gpu-memory-bytes", "1MiB"]),
                               ({}, [])):
            self.compare(spillway.simulate(graph, **keywords), "simulate", self.graph, *more)
        for swapping in (False, True):
            self.compare(
                spillway.explore(graph, sizes="128,256", gpu_memory_bytes="110MiB",
                                 swapping=swapping),
                "explore", self.graph, "--sizes", "128,256", "--gpu-memory-bytes", "110MiB",
                *(["--swapping"] if swapping else []),
                order=sorted)  # The program prints each size when it is found.

    def test_parts_of_answers(self):
        sizes = []
        report = spillway.explore(self.graph.read_bytes(), sizes="128", gpu_memory_bytes="1GiB",
                                  on_size=sizes.append)
        self.assertRegex(str(sizes[0]), r"^  size +fits .*\n +128 +yes +[0-9.]+ MiB")
        self.assertRegex(str(report.sizes[0].unswapped), r"^fits; a step takes [0-9.]+ ms\n")
        # Also of messages that a program has made itself, and of parts without a text of their own.
        forecast = messages.Forecast(fit="FITS", step_time_ns=1_500_000, devices=(
            messages.DeviceForecast(peak_bytes=2048),))
        self.assertRegex(str(forecast), r"\n  peak memory +2.00 KiB\n")
        self.assertEqual(str(messages.DeviceForecast(device="/gpu:0", peak_bytes=3)),
                         "device: '/gpu:0'\npeak_bytes: 3")


class AnswersTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.graph = common.graph("mnist_deep", shapes=True)

    def test_they_can_be_read_as_the_dicts_that_they_were(self):
        report = spillway.simulate(self.graph, **STEP)
        peak = report.forecast.devices[0].peak_bytes
        self.assertEqual(report["forecast"]["fit"], "FIT_FITS")
        self.assertEqual(report["forecast"]["devices"][0]["peak_bytes"], str(peak))
        self.assertEqual(report.forecast["fit"], "FIT_FITS")
        self.assertIn("forecast", report)
        self.assertNotIn("nothing", report)
        self.assertEqual(report.get("nothing", 3), 3)
        self.assertEqual(set(report), set(report.keys()))
        self.assertEqual(dict(report), report.to_dict())
        self.assertEqual(json.loads(report.to_json()), report.to_dict())
        with self.assertRaises(KeyError):
            report["nothing"]  # pylint: disable=pointless-statement
        tensors = []
        spillway.inspect(self.graph, on_tensors=tensors.extend)
        self.assertEqual(tensors[0]["tensor"], tensors[0].tensor)

    def test_they_are_values(self):
        report = spillway.simulate(self.graph, **STEP)
        for twin in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report),
                     messages.SimulateReport.from_dict(report.to_dict())):
            self.assertEqual(twin, report)
            self.assertEqual(twin["forecast"], report["forecast"])
        with self.assertRaises(dataclasses.FrozenInstanceError):
            report.node_count = 3
        self.assertEqual(messages.Forecast().fit, "")
        self.assertIsNone(messages.Forecast().step_time_ns)

    def test_every_field_of_every_answer_is_read(self):
        """Against the JSON of the library: numbers are numbers, enums lose their prefix."""
        result = spillway.rewrite(self.graph, strategy="scope")
        answers = [spillway.simulate(self.graph, memory=True, batch_size=8),
                   spillway.inspect(self.graph), spillway.capabilities(), result.report,
                   spillway.diff(self.graph, result.graph_def),
                   spillway.explore(self.graph, sizes=[8], no_budget=True)]

        def compare(data, value, path):
            if isinstance(data, dict):
                for key, inner in data.items():
                    compare(inner, getattr(value, key), path + "." + key)
            elif isinstance(data, list):
                self.assertEqual(len(data), len(value), path)
                for left, right in zip(data[:20], value[:20]):
                    compare(left, right, path)
            elif isinstance(value, bool) or isinstance(data, bool):
                self.assertIs(data, value, path)
            elif isinstance(value, (int, float)):
                self.assertEqual(float(data), value, path)
            elif data.endswith("_UNSPECIFIED"):
                self.assertEqual(value, "", path)
            else:
                self.assertTrue(data.lower().endswith(value.lower()) and (value or not data), path)

        for answer in answers:
            compare(answer.to_dict(), answer, type(answer).__name__)

    def test_what_is_unknown_to_this_package_is_left_out(self):
        data = {"forecast": {"fit": "FIT_NEW", "new_field": 3}, "newer": []}
        report = messages.SimulateReport.from_dict(data)
        self.assertEqual(report.forecast.fit, "NEW")
        self.assertEqual(messages.Forecast.from_dict({"fit": 7}).fit, "7")


if __name__ == "__main__":
    unittest.main()
