"""spillway.check as a call: the result, errors, types. Findings in a trace are tested in
tests/client_lib/text, whose code computes them, and on TensorFlow's own traces in
tf_check_test.py."""

import gzip
import json
import pathlib
import tempfile
import unittest

import common

common.set_up()
import spillway  # pylint: disable=wrong-import-position
from spillway._check import Figure  # pylint: disable=wrong-import-position


class CheckTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.graph = common.graph("mnist_deep", shapes=True)
        cls.result = spillway.rewrite(cls.graph, strategy="scope", n_tensors=3)
        # Of the graph without swaps.
        cls.trace = gzip.decompress(
            (common.GRAPHS / "mnist_deep" / "run_metadata.pb.gz").read_bytes())

    def test_the_answer_of_the_program_as_a_value(self):
        found = spillway.check(self.result, self.trace)
        with tempfile.TemporaryDirectory() as folder:
            graph, trace = pathlib.Path(folder, "graph.pb"), pathlib.Path(folder, "trace.pb")
            graph.write_bytes(self.result.graph_def)
            trace.write_bytes(self.trace)
            text = common.command("check", str(graph), str(trace)).decode()
            data = json.loads(common.command("check", str(graph), str(trace), "--json"))
        # The program adds the forecast with the trace's times, for which its columns are wider.
        self.assertEqual(str(found).split(), text.split("  with the trace")[0].split())
        self.assertFalse(found.as_planned)
        self.assertEqual(found.missing, tuple(data["missing"]))
        self.assertEqual((found.unmoved, found.unplanned), ((), ()))
        self.assertEqual(found.unknown_size_count, int(data["unknown_size_count"]))
        for name, figure in (("swap_outs", found.swap_outs), ("swap_ins", found.swap_ins),
                             ("copy_out_bytes", found.bytes_out),
                             ("copy_in_bytes", found.bytes_in),
                             ("step_time_ns", found.step_time_ns)):
            self.assertEqual({side: str(getattr(figure, side)) for side in data[name]}, data[name])
        device, = found.devices
        self.assertEqual(device.seen_as, data["devices"][0]["seen_as"])
        self.assertEqual(device.step_peak_bytes.seen,
                         int(data["devices"][0]["step_peak_bytes"]["seen"]))
        self.assertEqual(repr(found), "<Check: %s>" % str(found).splitlines()[0])
        self.assertIn("not all as planned: ", found._repr_html_())

    def test_a_share_of_what_was_planned(self):
        self.assertEqual(Figure(1_000_000, 90_000).share, 0.09)
        for figure in (Figure(None, 1), Figure(1, None), Figure(0, 1)):
            self.assertIsNone(figure.share)

    def test_a_report_in_every_form(self):
        report = self.result.report
        expected = spillway.check(report, self.trace)
        for form in (self.result, report.message, report.to_json(), report.to_json().encode()):
            self.assertEqual(spillway.check(form, self.trace), expected)

    def test_what_is_no_trace(self):
        with self.assertRaisesRegex(spillway.InvalidOptionError, "FULL_TRACE") as caught:
            spillway.check(self.result, b"\xff" * 20)
        self.assertEqual(caught.exception.reason, "BAD_OPTION")
        with self.assertRaisesRegex(spillway.InvalidOptionError,
                                    r"ran out of GPU memory \(No algorithm worked!"):
            spillway.check(self.result, LookupError("No algorithm worked!"))
        for trace in (None, "text", 5):
            with self.assertRaises(TypeError):
                spillway.check(self.result, trace)

    def test_what_is_no_report(self):
        for report in (None, 5, ["x"]):
            with self.assertRaises(TypeError):
                spillway.check(report, self.trace)
        for report in ("{", b"{]", b"\xff\xff"):
            with self.assertRaises(spillway.SpillwayError):
                spillway.check(report, self.trace)

    def test_both_steps_are_in_one_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "step.json")
            spillway.check(self.result, self.trace, trace=file, batch_size=8)
            events = json.loads(file.read_text("utf-8"))["traceEvents"]
        names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertIn("simulated: GPU", names)
        self.assertTrue(any(name.startswith("measured: ") for name in names), names)
        self.assertIn(self.result.report.swaps[0].swap_ins[0].name,
                      [event["name"] for event in events if event.get("cat") == "copy in"])

    def test_what_a_file_needs(self):
        with self.assertRaisesRegex(TypeError, "pass the RewriteResult"):
            spillway.check(self.result.report, self.trace, trace="x.json")
        with self.assertRaisesRegex(TypeError, "batch_size: of use with trace= alone"):
            spillway.check(self.result.report, self.trace, batch_size=8)


if __name__ == "__main__":
    unittest.main()
