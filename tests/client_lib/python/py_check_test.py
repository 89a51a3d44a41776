"""spillway.check on traces that are made here, so that what they hold is known."""

import json
import pathlib
import tempfile
import unittest

import common

common.set_up()
import spillway  # pylint: disable=wrong-import-position

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
FLOAT = 1


def varint(value):
    """Negative as an int64."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def node(name, start_us=0, end_us=0, dims=None, memory=b""):
    parts = [message(1, name), number(2, 1_000_000 + start_us), number(5, end_us - start_us),
             memory]
    if dims is not None:
        shape = b"".join(message(2, number(1, dim)) for dim in dims)
        parts.append(message(7, number(1, 0), message(
            3, number(1, FLOAT), message(2, shape), message(4, number(1, 4096)))))
        # A second output is no part of what a swap moves.
        parts.append(message(7, number(1, 1), message(3, number(1, FLOAT), message(2, b""))))
    return message(2, *parts)


def allocator(name, in_use, *records):
    return message(6, message(1, name), number(5, in_use), b"".join(
        message(6, number(1, when), number(2, size)) for when, size in records))


def step_stats(**devices):
    """{device: nodes}"""
    return b"".join(message(1, message(1, name), b"".join(nodes))
                    for name, nodes in devices.items())


def whole():
    return step_stats(**{GPU: [node("a", 0, 10)]})


class ProgramTest(unittest.TestCase):
    """`spillway check` finds the swaps in the graph, and Python in the report."""

    def test_the_program_sees_the_same(self):
        graph = common.graph("mnist_deep", shapes=True)
        result = spillway.rewrite(graph, strategy="scope", n_tensors=3)
        swapped = [node for swap in result.report.swaps
                   for node in (swap.swap_out, *(back.name for back in swap.swap_ins))]
        self.assertGreater(len(swapped), 5)
        names = sorted({place.tensor.rpartition(":")[0] for place in result.report.swaps} |
                       {reader.node for swap in result.report.swaps for back in swap.swap_ins
                        for reader in back.consumers})
        # One swap node did not run, one ran where its tensor was, one is not in the graph.
        trace = step_stats(**{
            GPU: [node(name, 10 * i, 10 * i + 5, memory=allocator(
                "GPU_0_bfc", 5000 + i, (10 * i, 300), (10 * i + 15, -300)))
                  for i, name in enumerate(names)] + [node(swapped[1], 3, 4, [7])],
            HOST: [node(name, 3, 4, [7, 2]) for name in swapped[2:]] +
                  [node("tower/lms/swapin_z_0")]})
        wanted = spillway.check(result.report, trace)
        with tempfile.TemporaryDirectory() as folder:
            graph_file, trace_file = pathlib.Path(folder, "g.pb"), pathlib.Path(folder, "t.pb")
            graph_file.write_bytes(result.graph_def)
            trace_file.write_bytes(trace)
            text = common.command("check", graph_file, trace_file).decode()
            found = json.loads(common.command("check", graph_file, trace_file, "--json"))
        # Word by word, but for what the program adds: the forecast with the trace's times.
        text = text.split("  with the trace")[0].rstrip("\n")
        self.assertEqual(str(wanted), text)
        self.assertEqual(repr(wanted), "<Check: %s>" % text.splitlines()[0])
        self.assertIn(text.split("\n", 1)[1], wanted._repr_html_())
        self.assertTrue(text.startswith("not all as planned: "))
        self.assertEqual((len(wanted.missing), len(wanted.unmoved), len(wanted.unplanned)),
                         (1, 1, 1))
        self.assertFalse(wanted.as_planned)

        def compare(data, figure):
            self.assertEqual({side: int(number) for side, number in data.items()},
                             {side: number for side, number in vars(figure).items()
                              if number is not None})
            self.assertEqual(figure.share,
                             figure.seen / figure.planned if figure.planned else None)

        for name, figure in (("swap_outs", wanted.swap_outs), ("swap_ins", wanted.swap_ins),
                             ("copy_out_bytes", wanted.bytes_out),
                             ("copy_in_bytes", wanted.bytes_in),
                             ("step_time_ns", wanted.step_time_ns)):
            compare(found[name], figure)
        device, = wanted.devices
        self.assertEqual((found["devices"][0]["device"], found["devices"][0]["seen_as"]),
                         (device.device, device.seen_as))
        compare(found["devices"][0]["step_peak_bytes"], device.step_peak_bytes)
        compare(found["devices"][0]["in_use_peak_bytes"], device.in_use_peak_bytes)


class CheckTest(unittest.TestCase):

    def test_a_report_in_every_form(self):
        graph = common.graph("cond_v1", shapes=True)
        result = spillway.rewrite(graph, strategy="scope")
        report = result.report
        trace = step_stats(**{GPU: [node(report.swaps[0].tensor.rpartition(":")[0])]})
        expected = spillway.check(report, trace)
        self.assertEqual(len(expected.missing),
                         expected.swap_outs.planned + expected.swap_ins.planned)
        for form in (result, report.message, report.to_json(), report.to_json().encode()):
            self.assertEqual(spillway.check(form, trace), expected)

    def test_what_is_no_trace(self):
        for trace in (b"", message(1, b""), b"\xff" * 20, whole()[:-3], message(1, whole())[:-1],
                      step_stats(**{GPU: []}), number(1, 5)):
            with self.subTest(trace=trace[:20]), self.assertRaises(
                    spillway.InvalidOptionError) as caught:
                spillway.check(b"", trace)
            self.assertEqual(caught.exception.reason, "BAD_OPTION")
            self.assertIn("FULL_TRACE", str(caught.exception))
        report = '{"swaps": [{"tensor": "a:0", "swap_out": "lms/swapout_a_0"}]}'
        with self.assertRaisesRegex(spillway.InvalidOptionError, "another graph"):
            spillway.check(report, step_stats(**{GPU: [node("elsewhere")]}))
        for trace in (None, "text", 5):
            with self.assertRaises(TypeError):
                spillway.check(b"", trace)

    def test_what_is_no_report(self):
        for report in (None, 5, ["x"]):
            with self.assertRaises(TypeError):
                spillway.check(report, whole())
        for report in ("{", b"{]", b"\xff\xff"):
            with self.assertRaises(spillway.SpillwayError):
                spillway.check(report, whole())


class TraceTest(unittest.TestCase):
    """The step that ran, beside the one that was simulated."""

    def test_both_steps_are_in_one_file(self):
        result = spillway.rewrite(common.graph("mnist_deep"), strategy="scope", batch_size=8,
                                  optimizer_scopes=["adam_optimizer"])
        swap = result.report.swaps[0]
        seen = step_stats(**{
            GPU: [node("a", 0, 10, memory=allocator("GPU_0_bfc", 0, (1_000_002, 500))),
                  node("b", 5, 20, memory=allocator("GPU_0_bfc", 0, (1_000_015, -500))),
                  node("c", 10, 12)],
            HOST: [node(swap.swap_out, 20, 22, [2])]})
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "step.json")
            found = spillway.check(result, seen, trace=file, batch_size=8)
            events = json.loads(file.read_text("utf-8"))["traceEvents"]
        self.assertEqual(found.swap_outs.seen, 1)
        names = {event["pid"]: event["args"]["name"] for event in events
                 if event["name"] == "process_name"}
        self.assertEqual(sorted(names.values()),
                         ["measured: " + HOST, "measured: " + GPU, "simulated: GPU"])
        measured = {event["name"]: event for event in events if event.get("cat") == "measured"}
        self.assertEqual(sorted(measured), sorted(["a", "b", "c", swap.swap_out]))
        self.assertEqual([measured[name]["ts"] for name in "abc"], [0, 5, 10])
        self.assertEqual([measured[name]["dur"] for name in "abc"], [10, 15, 2])
        # What ran at once is not in one row.
        self.assertNotEqual(measured["a"]["tid"], measured["b"]["tid"])
        self.assertEqual(measured["a"]["tid"], measured["c"]["tid"])
        self.assertEqual(names[measured["a"]["pid"]], "measured: " + GPU)
        held = [(event["ts"], event["args"]["bytes"]) for event in events
                if event["ph"] == "C" and event["pid"] == measured["a"]["pid"]]
        self.assertEqual(held, [(2, 500), (15, 0)])
        copies = [event for event in events if event.get("cat") == "copy in"]
        self.assertIn(swap.swap_ins[0].name, [event["name"] for event in copies])

    def test_what_it_needs(self):
        with self.assertRaisesRegex(TypeError, "pass the RewriteResult"):
            spillway.check(b"", whole(), trace="x.json")
        with self.assertRaisesRegex(TypeError, "batch_size: of use with trace= alone"):
            spillway.check(b"", whole(), batch_size=8)


if __name__ == "__main__":
    unittest.main()
