"""The calls, in process and on a server, without TensorFlow."""

import contextlib
import io
import json
import os
import pathlib
import runpy
import signal
import sys
import tempfile
import threading
import unittest
import warnings
import xml.etree.ElementTree
from unittest import mock

import common

common.set_up()
import spillway  # pylint: disable=wrong-import-position
from spillway import _native  # pylint: disable=wrong-import-position

SCOPE = dict(strategy="scope", lb=5, fuse_swapins=True, min_tensor_bytes=4096)
FLAGS = ("--strategy", "scope", "--lb", "5", "--fuse-swapins", "--min-tensor-bytes", "4096")


def by_command(graph):
    return common.command("rewrite", "-", "-o", "-", "--quiet", *FLAGS, stdin=graph)


class RewriteTest(unittest.TestCase):

    def test_the_bytes_are_those_of_the_program(self):
        graph = common.graph("cond_v1", shapes=True)
        result = spillway.rewrite(graph, **SCOPE)
        self.assertTrue(result.graph_def == by_command(graph))  # Too long to print.
        self.assertFalse(result.graph_def == graph)

    def test_a_server_gives_the_same_bytes_in_one_message_and_as_a_stream(self):
        with common.server() as address:
            # 50 KB; 1 MB as one message; the patch makes the answer a message of its own.
            for name in ("cond_v1", "resnet50_tf1"):
                graph = common.graph(name, shapes=True)
                here = spillway.rewrite(graph, **SCOPE)
                there = spillway.rewrite(graph, server=address, **SCOPE)
                self.assertEqual(here.graph_def, there.graph_def)
                edits = spillway.rewrite(graph, server=address, patch=True, **SCOPE)
                self.assertEqual(edits.graph_def, here.graph_def)
                self.assertEqual(edits.patch, spillway.rewrite(graph, patch=True, **SCOPE).patch)
            self.assertEqual(spillway.capabilities(server=address).version,
                             spillway.library_version())

    def test_strip_gives_the_original_back(self):
        graph = common.graph("cond_v1", shapes=True)
        stripped = spillway.strip(spillway.rewrite(graph, **SCOPE).graph_def)
        self.assertEqual(stripped.graph_def, graph)
        self.assertEqual(stripped.report.outcome, "STRIPPED")

    def test_a_dry_run_changes_nothing_and_says_what_it_would(self):
        graph = common.graph("cond_v1", shapes=True)
        made = spillway.rewrite(graph, **SCOPE)
        dry = spillway.rewrite(graph, dry_run=True, patch=True, **SCOPE)
        self.assertTrue(dry.graph_def == graph)
        self.assertEqual(dry.report.outcome, "DRY_RUN")
        self.assertEqual(dry.report.devices, made.report.devices)
        self.assertEqual((len(dry.patch.new_nodes), len(dry.patch.rewired_inputs)), (0, 0))
        self.assertIn("dry run, the graph is unchanged", str(dry.report))

    def test_the_default_is_budget(self):
        report = spillway.rewrite(common.graph("resnet50_tf1", shapes=True)).report
        self.assertEqual(report.strategy, "budget")
        self.assertIsNotNone(report.fits[0].peak_bytes)

    def test_the_patch_says_what_the_graph_says(self):
        graph = common.graph("cond_v1", shapes=True)
        result = spillway.rewrite(graph, patch=True, **SCOPE)
        report = result.report
        self.assertEqual({node.name for node in result.patch.new_nodes},
                         {swap.swap_out for swap in report.swaps} |
                         {back.name for swap in report.swaps for back in swap.swap_ins})
        self.assertEqual({(edit.node, edit.input_index) for edit in result.patch.rewired_inputs},
                         {(reader.node, reader.input_index) for swap in report.swaps
                          for back in swap.swap_ins for reader in back.consumers})

    def test_a_plan_is_kept_and_applied(self):
        graph = common.graph("cond_v1", shapes=True)
        self.assertIsNone(spillway.rewrite(graph, **SCOPE).plan)
        saved = spillway.rewrite(graph, save_plan=True, **SCOPE)
        self.assertIsNone(saved.patch)
        kept = saved.plan.to_json()
        self.assertNotIn('"clones"', kept)  # Which programs of format 1 do not know.
        self.assertEqual(json.loads(kept)["strategy"], "STRATEGY_SCOPE")
        self.assertEqual(spillway.Plan.from_json(kept), saved.plan)
        for plan in (saved.plan, kept, kept.encode()):
            applied = spillway.apply(graph, plan)
            self.assertEqual(applied.graph_def, saved.graph_def)
            self.assertEqual(applied.report.strategy, "apply")
        both = spillway.rewrite(graph, save_plan=True, patch=True, **SCOPE)
        self.assertEqual(both.plan, saved.plan)
        self.assertEqual(len(both.patch.new_nodes),
                         both.report.node_count_after - both.report.node_count_before)
        # Without a plan, `plan` is None.
        self.assertIsNone(spillway.rewrite(saved.graph_def, save_plan=True, **SCOPE).plan)

    def test_a_plan_that_cannot_be_applied(self):
        saved = spillway.rewrite(common.graph("cond_v1", shapes=True), save_plan=True, **SCOPE)
        with self.assertRaises(spillway.InvalidOptionError) as raised:
            spillway.apply(common.graph("mnist_deep"), saved.plan)
        self.assertEqual(raised.exception.reason, "OTHER_GRAPH")
        for text in ("", "no JSON", "[]", '{"swap": []}'):
            with self.assertRaises(spillway.InvalidOptionError) as raised:
                spillway.apply(common.graph("cond_v1", shapes=True), text)
            self.assertEqual(raised.exception.reason, "BAD_PLAN", text)
        with self.assertRaisesRegex(TypeError, "lb is of the strategy scope"):
            spillway.apply(common.graph("cond_v1", shapes=True), saved.plan, lb=3)
        with self.assertRaisesRegex(TypeError, "plan is of the strategy apply"):
            spillway.rewrite(common.graph("cond_v1", shapes=True), plan=saved.plan)

    def test_the_sample_that_fits_a_budget_draws_a_picture(self):
        sample = runpy.run_path(str(common.PACKAGE / "samples" / "fit_a_budget.py"))
        with tempfile.TemporaryDirectory() as folder:
            source, out, svg = (pathlib.Path(folder, n) for n in ("in.pb", "out.pb", "out.svg"))
            source.write_bytes(common.graph("resnet50_tf1"))
            arguments = [str(source), "8000", str(out), str(svg)]
            with mock.patch.object(sys, "argv", ["fit_a_budget.py"] + arguments):
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    self.assertEqual(sample["main"](), 0)
            self.assertRegex(said.getvalue(), "before: does not fit\nafter: fits; ")
            self.assertIn(b"lms/swapin_", out.read_bytes())
            drawn = xml.etree.ElementTree.parse(svg).getroot()
        peaks = [int(mark.get("data-peak-bytes")) / (1 << 20)
                 for mark in drawn.iter("{http://www.w3.org/2000/svg}circle")]
        self.assertGreater(peaks[0], 8000)
        self.assertLessEqual(peaks[1], 8000)

    def test_bytearray_and_memoryview(self):
        graph = common.graph("cond_v1", shapes=True)
        expected = spillway.rewrite(graph, **SCOPE).graph_def
        self.assertEqual(spillway.rewrite(bytearray(graph), **SCOPE).graph_def, expected)
        self.assertEqual(spillway.rewrite(memoryview(graph), **SCOPE).graph_def, expected)


class ReportTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.report = spillway.rewrite(common.graph("resnet50_tf1", shapes=True), **SCOPE).report
        cls.json = json.loads(cls.report.to_json())

    def test_the_numbers_of_the_readme(self):
        self.assertEqual(self.report.outcome, "REWRITTEN")
        self.assertEqual(self.report.node_count_before, 4762)
        self.assertEqual(self.report.swapped_tensor_count, self.report.devices[0].swap_out_count)

    def test_decisions_come_when_asked_for_and_are_all(self):
        self.assertNotIn("decisions", vars(self.report))
        decisions = self.report.decisions
        self.assertEqual(len(decisions), len(self.json["decisions"]))
        self.assertEqual(sum(decision.reason == "SWAPPED" for decision in decisions),
                         self.report.swapped_tensor_count)
        unknown = [d for d in decisions if d.size_bytes is None]
        self.assertTrue(all(d.size_unknown not in ("", "UNSPECIFIED") for d in unknown))


class ErrorTest(unittest.TestCase):

    def test_reasons_become_classes(self):
        graph = common.graph("resnet50_tf1", shapes=True)
        cases = [
            (dict(strategy="scope", lb=0), spillway.InvalidOptionError, "BAD_OPTION"),
            (dict(graph=b"no graph"), spillway.InvalidGraphError, "MALFORMED_GRAPH"),
            (dict(graph=b""), spillway.InvalidGraphError, "EMPTY_GRAPH"),
            # node { name: "x" op: "NoOp" }
            (dict(graph=b"\x0a\x09\x0a\x01x\x12\x04NoOp", strategy="scope"),
             spillway.NoBackwardPartError, "NO_BACKWARD_PART"),
            (dict(strategy="scope", optimizer_scopes=["nowhere"]), spillway.InvalidOptionError,
             "NAME_MATCHES_NOTHING"),
            (dict(gpu_memory_bytes=10**8), spillway.DoesNotFitError, "DOES_NOT_FIT"),
            (dict(timeout=0), spillway.DeadlineExceededError, "STOPPED"),
        ]
        for keywords, kind, reason in cases:
            with self.subTest(reason=reason), self.assertRaises(kind) as caught:
                spillway.rewrite(**{"graph": graph, **keywords})
            self.assertEqual(caught.exception.reason, reason)

    def test_the_smallest_budget_is_one(self):
        graph = common.graph("resnet50_tf1", shapes=True)
        with self.assertRaises(spillway.DoesNotFitError) as caught:
            spillway.rewrite(graph, gpu_memory_bytes=10**8)
        self.assertEqual(caught.exception.budget_bytes, 9 * 10**7)  # Less the reserve.
        fits = spillway.rewrite(graph, gpu_memory_bytes=caught.exception.smallest_gpu_memory_bytes)
        self.assertEqual(fits.report.forecast_after.fit, "FITS")

    def test_what_is_no_graph(self):
        for value in (5, "graph.pb", None, ["x"]):
            with self.assertRaises(TypeError):
                spillway.rewrite(value)

    def test_a_server_that_is_down(self):
        graph = common.graph("cond_v1", shapes=True)
        with self.assertRaises(spillway.UnavailableError) as caught:
            spillway.rewrite(graph, server="127.0.0.1:1", retries=0)
        self.assertIsInstance(caught.exception, ConnectionError)
        self.assertIn("127.0.0.1:1", str(caught.exception))

    def test_fail_open_warns_and_gives_the_graph_back(self):
        graph = common.graph("cond_v1", shapes=True)
        with self.assertWarnsRegex(spillway.SpillwayWarning, "trains as it is: cannot reach"):
            result = spillway.rewrite(graph, server="127.0.0.1:1", retries=0, fail_open=True)
        self.assertEqual(result.graph_def, graph)
        self.assertIsNone(result.report)
        self.assertIsInstance(result.error, spillway.UnavailableError)

    def test_fail_open_is_not_for_keywords(self):
        with self.assertRaises(TypeError), warnings.catch_warnings():
            warnings.simplefilter("error")
            spillway.rewrite(common.graph("cond_v1", shapes=True), fail_open=True, lbb=3)

    def test_what_needs_a_server(self):
        graph = common.graph("cond_v1", shapes=True)
        for keywords in (dict(tls=True), dict(retries=1), dict(tls_ca="f"), dict(server=""), dict(token="t"), dict(token_file="f"),
                         dict(token_in_clear=True), dict(hedge_after=1), dict(request_id="i"),
                         dict(traceparent="t")):
            with self.subTest(**keywords), self.assertRaises(TypeError):
                spillway.rewrite(graph, **keywords)

    def test_what_the_server_is_told_of_the_caller(self):
        graph = common.graph("cond_v1", shapes=True)
        options = dict(strategy="scope", token_in_clear=True, hedge_after=60,
                       traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        with common.server() as address:
            # The first server does not exist.
            result = spillway.rewrite(graph, server="127.0.0.1:1," + address, token="abc",
                                      request_id="job-17", **options)
            self.assertEqual(result.graph_def, spillway.rewrite(graph, strategy="scope").graph_def)
            for wrong in (dict(request_id="two words"), dict(token="a b"), dict(hedge_after=0),
                          dict(token_file="/nowhere.token")):
                with self.subTest(**wrong), self.assertRaises(spillway.InvalidOptionError):
                    spillway.rewrite(graph, server=address, **{**options, **wrong})
        with self.assertRaisesRegex(spillway.InvalidOptionError, "trainer.example:7070"):
            spillway.rewrite(graph, server="trainer.example:7070", token="abc")

    def test_a_tls_file_that_is_not_there(self):
        with self.assertRaisesRegex(spillway.SpillwayError, "nowhere.pem"):
            spillway.rewrite(common.graph("cond_v1", shapes=True), server="127.0.0.1:1", tls=True,
                             tls_ca="/nowhere.pem", retries=0)


class CallTest(unittest.TestCase):

    def test_progress_comes_from_another_thread(self):
        seen = []
        with common.server() as address:
            spillway.rewrite(common.graph("resnet50_tf1", shapes=True), server=address, timeout=60,
                             progress=lambda *stage: seen.append((threading.get_ident(), stage)),
                             **SCOPE)
        stages = {stage for _, (stage, _, _) in seen}
        self.assertTrue(stages <= {"sending", "rewriting", "receiving"})
        self.assertTrue(seen)
        self.assertNotIn(threading.get_ident(), {thread for thread, _ in seen})

    def test_what_progress_raises_ends_the_call(self):
        def progress(*_):
            raise LookupError("enough")
        for server in (None, "down"):
            with self.subTest(server=server), self.assertRaisesRegex(LookupError, "enough"):
                if server is None:
                    spillway.rewrite(common.graph("resnet50_tf1", shapes=True), progress=progress)
                else:
                    with common.server() as address:
                        spillway.rewrite(common.graph("resnet50_tf1", shapes=True), server=address,
                                         progress=progress)

    def test_the_best_plan_of_a_search_is_kept(self):
        graph = common.graph("resnet50_tf1", shapes=True)
        search = dict(gpu_memory_bytes="8GiB", planning_effort="high", keep_best=True)
        for timeout in (1, 4, 16, common.PATIENCE_S):
            try:
                report = spillway.rewrite(graph, timeout=timeout, **search).report
                break
            except spillway.DeadlineExceededError:
                pass  # Before it had a plan.
        self.assertTrue(report.stopped_early)
        with common.server() as address, self.assertRaisesRegex(
                spillway.InvalidOptionError, "keep_best is for .*; leave out keep_best or the server"):
            spillway.rewrite(graph, server=address, **search)

    def test_ctrl_c_ends_a_call(self):
        """The signal comes while the call is surely under way, and ends it before it is done."""
        # A shell that runs this in the background has it ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        lib, codes, cancelled = _native.library(), [], threading.Event()
        rewrite, cancel = lib.spillway_rewrite_graph, lib.spillway_call_cancel

        def spy_rewrite(*arguments):
            status = rewrite(*arguments)
            codes.append(lib.spillway_status_code(status))
            return status

        def spy_cancel(handle):
            cancel(handle)
            cancelled.set()

        def progress(*_):
            if not cancelled.is_set():
                os.kill(os.getpid(), signal.SIGINT)
                # The call goes on when the main thread has seen the signal.
                cancelled.wait(common.PATIENCE_S / 4)

        with mock.patch.object(lib, "spillway_rewrite_graph", spy_rewrite), \
                mock.patch.object(lib, "spillway_call_cancel", spy_cancel), \
                self.assertRaises(KeyboardInterrupt):
            spillway.rewrite(common.graph("resnet50_tf1", shapes=True), progress=progress)
        self.assertEqual(codes, [1])  # CANCELLED.
        # And the next call is as if nothing had been.
        spillway.rewrite(common.graph("cond_v1", shapes=True), **SCOPE)

    def test_other_threads_run_during_a_call(self):
        """The GIL is released: a thread ticks while the library works. Otherwise it could tick
        once, between two instructions of Python."""
        lib, ticks, gained, stop = _native.library(), [], [], threading.Event()
        real = lib.spillway_rewrite_graph

        def spy(*arguments):
            before = len(ticks)
            status = real(*arguments)
            gained.append(len(ticks) - before)
            return status

        def tick():
            while not stop.wait(0.001):
                ticks.append(1)

        ticker = threading.Thread(target=tick)
        ticker.start()
        try:
            with mock.patch.object(lib, "spillway_rewrite_graph", spy):
                spillway.rewrite(common.graph("tfcnn_inception3_4gpu"), **SCOPE)
        finally:
            stop.set()
            ticker.join()
        self.assertGreater(gained[0], 5)

    def test_after_a_fork(self):
        """The child has none of the parent's threads."""
        graph = common.graph("cond_v1", shapes=True)
        expected = spillway.rewrite(graph, **SCOPE).graph_def
        child = os.fork()
        if child == 0:
            signal.alarm(common.PATIENCE_S)  # A child that hangs ends.
            try:
                os._exit(spillway.rewrite(graph, **SCOPE).graph_def != expected)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)

    def test_many_threads_at_once(self):
        graph = common.graph("cond_v1", shapes=True)
        expected = spillway.rewrite(graph, **SCOPE).graph_def
        results = []
        threads = [threading.Thread(target=lambda: results.append(
            spillway.rewrite(graph, **SCOPE).graph_def)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [expected] * 8)


class LibraryTest(unittest.TestCase):

    def test_import_loads_no_other_package_and_no_library(self):
        done = common.python(
            "import sys; before = set(sys.modules)\n"
            "import spillway, os\n"
            "names = {m.split('.')[0] for m in set(sys.modules) - before}\n"
            "print(sorted(names & {'tensorflow', 'grpc', 'google', 'numpy', 'keras'}))\n"
            "print('libspillway' in open('/proc/self/maps').read())", library="/nowhere.so")
        self.assertEqual(done.stdout, "[]\nFalse\n", done.stderr)

    def assert_library_error(self, library, expected):
        done = common.python(
            "import spillway\n"
            "try:\n  spillway.rewrite(b'')\n"
            "except ImportError as error:\n  print(type(error).__name__, error)", library=library)
        self.assertRegex(done.stdout, expected, done.stderr)

    def test_a_missing_library(self):
        self.assert_library_error(
            "/nowhere/libspillway.so.0",
            "NativeLibraryError .*/nowhere/libspillway.so.0.*SPILLWAY_LIBRARY")

    def test_a_library_of_something_else(self):
        # The other one of the two: an easy mistake.
        self.assert_library_error(common.LIBRARY.with_name("libspillway_client.so.0"),
                                  "NativeLibraryError .*is no library of Spillway for this package")

    def test_a_library_of_a_newer_package(self):
        done = common.python(
            "import spillway; from spillway import _native; _native.API_VERSION = 1000\n"
            "try:\n  spillway.rewrite(b'')\n"
            "except spillway.NativeLibraryError as error:\n  print(error)")
        self.assertRegex(done.stdout, r"has version \d+, and 1000 is needed", done.stderr)

    def test_a_missing_library_fails_open(self):
        done = common.python(
            "import spillway, sys\n"
            "r = spillway.rewrite(b'x', fail_open=True); print(r.graph_def, r.error is not None)",
            library="/nowhere.so")
        self.assertEqual(done.stdout, "b'x' True\n", done.stderr)

    def test_without_the_client_library_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            lonely = os.path.join(folder, "libspillway.so.0")
            with open(lonely, "wb") as file:
                file.write(common.LIBRARY.read_bytes())
            done = common.python(
                "import spillway\n"
                "try:\n  spillway.rewrite(b'x')\n"
                "except spillway.NativeLibraryError as error:\n  print(error)", library=lonely)
        self.assertIn("libspillway_client.so.0", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
