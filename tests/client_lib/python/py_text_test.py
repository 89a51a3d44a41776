"""What people read: print, repr, a notebook; and answers as numbers."""

import base64
import copy
import dataclasses
import html.parser
import json
import pickle
import re
import types
import unittest
import xml.etree.ElementTree
from unittest import mock

import common

common.set_up()
# pylint: disable=wrong-import-position
import spillway
from spillway import _size, messages

GIB = 1 << 30
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
        cls.result = spillway.rewrite(cls.graph, gpu_memory_bytes="8GiB", hardware="p100_pcie",
                                      save_plan=True, patch=True)
        cls.report = cls.result.report

    def test_print_says_needed_setting_and_cost(self):
        fit = self.report.fits[0]
        text = str(self.result)
        self.assertEqual(text.splitlines()[0], self.report.summary)
        self.assertRegex(text, r"\n  budget +%s, from gpu_memory_bytes, less 10%%" % re.escape(
            _size.format_bytes(fit.budget_bytes)))
        self.assertRegex(text, r"\n  needed +%s at the peak as it came, %s more than the budget" % (
            _size.format_bytes(fit.unswapped_peak_bytes),
            _size.format_bytes(fit.unswapped_peak_bytes - fit.budget_bytes)))
        self.assertRegex(text, r"\n  setting +objective fastest_that_fits, planning_effort medium")
        self.assertRegex(text, r"\n  step +[0-9.]+ ms launched ahead, %.2f times [0-9.]+ ms at full "
                               r"speed" % (fit.step_time_ns / fit.full_speed_step_time_ns))
        largest = max(self.report.swaps, key=lambda swap: swap.size_bytes)
        self.assertIn("%s %s" % (largest.tensor, _size.format_bytes(largest.size_bytes)), text)
        self.assertLess(max(map(len, text.splitlines())), 101)
        self.assertLess(len(text), 3000)
        self.assertEqual(text, str(self.report))

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
        self.assertEqual(repr(spillway.Plan(b"\xff")), "<Plan: 1 bytes that are none>")

    def test_a_result_that_is_none(self):
        with self.assertWarns(spillway.SpillwayWarning):
            result = spillway.rewrite(self.graph, server="127.0.0.1:1", retries=0, fail_open=True)
        for text in (str(result), repr(result), result._repr_html_()):
            self.assertIn("not rewritten: ", text)
            self.assertIn("127.0.0.1:1", text)

    def test_a_notebook_shows_what_a_decision_needs(self):
        view = self.result._repr_html_()
        text = "\n".join(Tags(view).text)
        for word in ("needed", "setting", "step", "largest swaps", "copies"):
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
        self.assertLessEqual(Tags(view).tags, {"p", "b", "table", "tr", "th", "td", "ul", "li"})
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

    def test_what_other_strategies_say(self):
        graph = common.graph("cond_v1", shapes=True)
        text = str(spillway.rewrite(graph, strategy="scope", lb=5))
        self.assertRegex(text, r"\n  setting +n_tensors all, lb 5, ub 10000")
        text = str(spillway.rewrite(self.graph, strategy="level", swapout_threshold=40,
                                    swapin_ahead=3, swapin_groupby=2))
        self.assertRegex(text, r"\n  setting +swapout_threshold 40, swapin_ahead 3, swapin_groupby 2")
        fits = str(spillway.rewrite(self.graph, gpu_memory_bytes="60GiB"))
        self.assertIn("no swapping is needed", fits)
        stripped = str(spillway.strip(self.result.graph_def))
        self.assertIn("strategy  strip", stripped)


class AnswersTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.graph = common.graph("mnist_deep", shapes=True)

    def test_a_simulation(self):
        report = spillway.simulate(self.graph, memory=True, **STEP)
        forecast = report.forecast
        self.assertEqual(forecast.fit, "FITS")
        device, = forecast.devices
        self.assertIsInstance(device.peak_bytes, int)
        self.assertGreaterEqual(device.peak_bytes, device.resident_bytes)
        self.assertEqual(max(sample.bytes for sample in report.memory[0].timeline) <=
                         device.peak_bytes, True)
        text = str(report)
        self.assertEqual(text.splitlines()[0], "a step fits")
        self.assertIn(_size.format_bytes(device.peak_bytes), text)
        self.assertIn("p100_pcie", text)
        self.assertEqual(str(spillway.simulate(
            self.graph, gpu_memory_bytes="1MiB", **STEP)).splitlines()[0], "a step does not fit")
        self.assertEqual(str(spillway.simulate(self.graph)).splitlines()[0],
                         "it is not known whether a step fits")

    def test_an_exploration(self):
        told = []
        report = spillway.explore(self.graph, sizes="8,16", gpu_memory_bytes="1GiB", swapping=True,
                                  feeds=STEP["feeds"], on_size=told.append)
        self.assertTrue(all(isinstance(size, spillway.ExploredSize) for size in told))
        self.assertIsInstance(report.sizes[0].sizes_per_s, float)
        self.assertIsInstance(report.largest_fitting_size, int)
        text = str(report)
        self.assertIn("largest batch that fits: %d\n" % report.largest_fitting_size, text)
        for size in report.sizes:
            self.assertRegex(text, r"(?m)^ +%d +\S" % size.size)
        unknown = spillway.explore(self.graph, sizes="8", gpu_memory_bytes="1GiB")
        self.assertIn("fits: %d, as far as is known\n" % unknown.largest_fitting_size, str(unknown))
        self.assertRegex(str(min(told, key=lambda size: size.size)), r"^size \d+: fits, [0-9.]+ ms a step, [0-9.e+]+ a second; ")

    def test_a_graph(self):
        summary = spillway.inspect(self.graph)
        text = str(summary)
        self.assertEqual(text.splitlines()[0], "a graph of 355 nodes, %s" % _size.format_bytes(
            len(self.graph)))
        top = summary.op_types[0]
        self.assertIn("%d %s" % (top.count, top.name), text)

    def test_a_difference(self):
        result = spillway.rewrite(self.graph, strategy="scope")
        diff = spillway.diff(self.graph, result.graph_def)
        self.assertEqual({swap.tensor for swap in diff.swaps},
                         {swap.tensor for swap in result.report.swaps})
        self.assertRegex(str(diff), r"^%d tensors are swapped in B and not in A" % len(diff.swaps))
        self.assertEqual(str(spillway.diff(self.graph, self.graph)), "the files are the same")

    def test_what_a_server_can(self):
        answer = spillway.capabilities()
        self.assertEqual(answer.strategies, ("budget", "level", "scope"))
        self.assertIsInstance(answer.limits.max_graph_bytes, int)
        self.assertIn("p100_pcie", str(answer))
        self.assertEqual(str(answer).splitlines()[0], "Spillway " + spillway.__version__)

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
                   spillway.inspect(self.graph), spillway.capabilities(),
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


class FormatTest(unittest.TestCase):

    def test_sizes_and_times(self):
        for count, text in ((None, "-"), (0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"),
                            (3 << 20, "3.00 MiB"), (5000 * GIB, "5000.00 GiB")):
            self.assertEqual(_size.format_bytes(count), text)
        for time, text in ((None, "-"), (1000, "0.00 ms"), (90_000, "0.09 ms"),
                           (12_340_000, "12.3 ms"), (1_234_000_000, "1234 ms")):
            self.assertEqual(_size.format_time(time), text)


if __name__ == "__main__":
    unittest.main()
