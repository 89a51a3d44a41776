"""One rewrite for the ranks of a job, each a process of its own, without Horovod and TensorFlow."""

import json
import multiprocessing
import os
import pathlib
import random
import tempfile
import unittest
import warnings
from unittest import mock

import common

common.set_up()
import spillway  # pylint: disable=wrong-import-position
import spillway.horovod  # pylint: disable=wrong-import-position
from spillway import _questions, _wire  # pylint: disable=wrong-import-position

SPAWN = multiprocessing.get_context("spawn")
SCOPE = dict(strategy="scope", lb=5, fuse_swapins=True)
# Of GraphDef and NodeDef.
NODE, INPUT, ATTR = 1, 3, 5


class FakeHorovod:
    """The used part of Horovod, over a pipe from each rank to each other one. Like Horovod, it
    waits forever."""

    def __init__(self, rank, size, pipes):
        self._rank, self._size, self._pipes = rank, size, pipes

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def local_size(self):
        return self._size

    def broadcast_object(self, value, root_rank=0, name=None):
        if self._rank == root_rank:
            for rank in range(self._size):
                if rank != root_rank:
                    self._pipes[root_rank, rank][1].send((name, value))
            return value
        sent, value = self._pipes[root_rank, self._rank][0].recv()
        assert sent == name, "rank %d is at %s, rank %d at %s" % (self._rank, name, root_rank, sent)
        return value


def run_rank(rank, size, how, job, answers):
    """A rank: the outcome of its call goes to the parent."""
    if rank > 0:
        os.environ["SPILLWAY_LIBRARY"] = "/nonexistent"  # It must not ask itself.
    os.environ.update(job.get("environment", {}))
    keywords = {"wait": common.PATIENCE_S, **job.get("keywords", {})}
    if isinstance(how, str):
        keywords.update(folder=how, rank=rank, size=size, local_size=size)
    else:
        keywords["hvd"] = FakeHorovod(rank, size, how)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = spillway.horovod.rewrite(job["graphs"][rank], **keywords)
        message = result._report_message
        answers.send((result.graph_def, message, [str(w.message) for w in caught]))
    except Exception as error:  # pylint: disable=broad-except
        answers.send((error,))


def run_job(how, graphs, ranks=None, **job):
    """{rank: its answer}. `ranks`: those that take part; default: all."""
    size = len(graphs)
    if how == "horovod":
        how = {(a, b): SPAWN.Pipe(duplex=False) for a in range(size) for b in range(size) if a != b}
    ranks = range(size) if ranks is None else ranks
    answer_pipes = {rank: SPAWN.Pipe(duplex=False) for rank in ranks}
    processes = {rank: SPAWN.Process(target=run_rank, daemon=True, args=(
        rank, size, how, {"graphs": graphs, **job}, answer_pipes[rank][1])) for rank in ranks}
    for process in processes.values():
        process.start()
    try:
        answers = {}
        for rank, (receive, _) in answer_pipes.items():
            if not receive.poll(common.PATIENCE_S):
                raise AssertionError("only ranks %s answered" % sorted(answers))
            answers[rank] = receive.recv()
    finally:
        for process in processes.values():
            process.join(5)  # Longer than an end takes; one that hangs then is another test's.
            process.kill()
    return answers


def with_rank(graph, rank):
    """The graph with an attribute of the rank on every node, as seeds and shards are."""
    attribute = _wire.field(ATTR, _wire.field(1, b"_rank") + _wire.field(
        2, _wire.field(2, b"%d" % rank)))
    return b"".join(_wire.field(NODE, bytes(value) + attribute) if number == NODE else bytes(whole)
                    for number, whole, value in _wire.parts(graph))


def shuffled(graph):
    """The same nodes in another order, each with its control inputs in another order."""
    nodes, rest = [], []
    for number, whole, node in _wire.parts(graph):
        if number != NODE:
            rest.append(bytes(whole))
            continue
        inputs = [bytes(part) for kind, part, _ in _wire.parts(node) if kind == INPUT]
        controls = [part for part in inputs if part[2:3] == b"^" or part[3:4] == b"^"]
        data = [part for part in inputs if part not in controls]
        others = [bytes(part) for kind, part, _ in _wire.parts(node) if kind != INPUT]
        nodes.append(_wire.field(NODE, b"".join(others[:2] + data + controls[::-1] + others[2:])))
    random.Random(1).shuffle(nodes)
    return b"".join(nodes + rest)


class Transports:
    """Each test twice."""

    def job(self, *arguments, **keywords):
        if self.TRANSPORT == "horovod":
            return run_job("horovod", *arguments, **keywords)
        with tempfile.TemporaryDirectory() as folder:
            return run_job(folder, *arguments, **keywords)

    def assert_all_raise(self, answers, kind, reason, pattern):
        for rank, answer in answers.items():
            with self.subTest(rank=rank):
                self.assertEqual(len(answer), 1, "rank %d raised nothing" % rank)
                self.assertIsInstance(answer[0], kind)
                self.assertEqual(getattr(answer[0], "reason", ""), reason)
                self.assertRegex(str(answer[0]), pattern)

    def test_one_answer_for_all_and_each_keeps_its_own(self):
        graph = common.graph("cond_v1", shapes=True)
        graphs = [with_rank(graph, rank) for rank in range(3)]
        keywords = dict(SCOPE, hardware="p100_pcie")
        answers = self.job(graphs, keywords=keywords)
        for rank, (rewritten, message, caught) in answers.items():
            self.assertEqual(caught, [])
            # The same bytes as a rewrite of its own.
            expected = spillway.rewrite(graphs[rank], **keywords)
            self.assertGreater(expected.report.swapped_tensor_count, 0)
            self.assertTrue(rewritten == expected.graph_def)
            self.assertEqual(message, answers[0][1])
            self.assertTrue(spillway.strip(rewritten).graph_def == graphs[rank])
        self.assertNotEqual(answers[0][0], answers[1][0])

    def test_added_control_edges_are_shared_too(self):
        graph = common.graph("mnist_deep")
        keywords = dict(strategy="level", swapout_threshold=5, swapin_ahead=1, swapin_groupby=0,
                        sync_mode=3, batch_size=8)
        expected = spillway.rewrite(graph, patch=True, **keywords)
        self.assertTrue(expected.patch.added_controls)
        answers = self.job([graph, graph], keywords=keywords)
        self.assertTrue(answers[1][0] == expected.graph_def)

    def test_another_order_is_the_same_graph(self):
        graph = common.graph("cond_v1", shapes=True)
        other = shuffled(graph)
        self.assertNotEqual(graph, other)
        answers = self.job([graph, other], keywords=SCOPE)
        rewritten = answers[1][0]
        self.assertTrue(spillway.strip(rewritten).graph_def == other)
        swaps = spillway.rewrite(graph, **SCOPE).report.swaps
        self.assertEqual({swap.swap_out for swap in swaps}, {
            bytes(value).decode() for node in _nodes(rewritten) for number, value in
            _wire.values(node) if number == 1 and bytes(value).startswith(b"lms/swapout_")})

    def test_host_memory_is_divided(self):
        graph = common.graph("cond_v1", shapes=True)

        def host_memory(**keywords):
            message = self.job([graph, graph], keywords={**SCOPE, **keywords})[0][1]
            report = spillway.Report.from_message(message)
            return int(json.loads(report.to_json())["hardware"]["hardware"]["host_memory_bytes"])

        self.assertEqual(host_memory(host_memory_bytes=10**12 + 1), 10**12 // 2)
        self.assertEqual(host_memory(hardware={"host_memory_bytes": "8GB"}), 4 * 10**9)
        self.assertEqual(_questions.host_memory_of({"hardware": {
            "host_memory_bytes": "8GB", "gpu_memories": {"/gpu:7": "4GiB"}}}), 8 * 10**9)
        preset, = [preset["hardware"] for preset in spillway.capabilities()["hardware_presets"]
                   if preset["hardware"]["preset"] == "a100_40gb_pcie4"]
        self.assertEqual(host_memory(hardware="a100_40gb_pcie4"),
                         int(preset["host_memory_bytes"]) // 2)
        default = json.loads(spillway.rewrite(graph, **SCOPE).report.to_json())["hardware"]["hardware"]
        self.assertEqual(host_memory(), int(default["host_memory_bytes"]) // 2)

    def test_the_host_memory_is_that_of_the_machine_that_nvidia_smi_names(self):
        """Of each rank's process, which asks it once."""
        graph = common.graph("cond_v1", shapes=True)
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "nvidia-smi"
            program.write_text("#!/bin/sh\necho NVIDIA L4\n", encoding="utf-8")
            program.chmod(0o755)
            environment = {"PATH": "%s:%s" % (folder, os.environ["PATH"]),
                           "CUDA_VISIBLE_DEVICES": "0"}  # The tests' own hides all GPUs.
            messages = [self.job([graph] * size, environment=environment,
                                 keywords={"hardware": "auto", **SCOPE})[0][1] for size in (1, 2)]
        reports = [json.loads(spillway.Report.from_message(message).to_json())["hardware"]["hardware"]
                   for message in messages]
        self.assertEqual([report["preset"] for report in reports], ["l4", "l4"])
        whole, share = (int(report["host_memory_bytes"]) for report in reports)
        self.assertEqual(share, whole // 2)

    def test_a_failure_of_rank_0_is_everybody_s(self):
        graph = common.graph("cond_v1")
        answers = self.job([graph] * 3, keywords=dict(strategy="scope", lb=0))
        self.assert_all_raise(answers, spillway.InvalidOptionError, "BAD_OPTION", "lb")
        self.assertNotIn("rank 0", str(answers[0][0]))
        self.assertRegex(str(answers[2][0]), "^rank 0: ")
        self.assertEqual(answers[2][0].metadata, answers[0][0].metadata)

    def test_a_wrong_keyword_and_what_cannot_be_shared(self):
        graph = common.graph("cond_v1")
        for keywords in (dict(lbb=1), dict(strategy="strip"), dict(already_rewritten="replan")):
            self.assert_all_raise(self.job([graph] * 2, keywords={**keywords, "fail_open": True}),
                                  TypeError, "", "no option|strip on each rank")

    def test_a_failure_of_another_rank_is_everybody_s(self):
        graph = common.graph("cond_v1")
        self.assert_all_raise(self.job([graph, graph, 5]), TypeError, "", "graph is a int")
        self.assert_all_raise(self.job([graph, b"\xff", graph]), spillway.InvalidGraphError,
                              "MALFORMED_GRAPH", "damaged")

    def test_different_graphs(self):
        answers = self.job([common.graph("cond_v1"), common.graph("mnist_deep")])
        self.assert_all_raise(answers, spillway.InvalidGraphError, "GRAPH_DIFFERS",
                              r"rank 1 has another graph \(355 nodes\) than rank 0 \(280 nodes\)")

    def test_fail_open(self):
        graph = common.graph("cond_v1")
        answers = self.job([graph] * 2, keywords=dict(
            server="127.0.0.1:1", retries=0, strategy="scope", fail_open=True))
        for graph_def, message, caught in answers.values():
            self.assertEqual((graph_def, message), (graph, None))
            self.assertEqual(len(caught), 1)
            self.assertRegex(caught[0], "trains as it is: .*127.0.0.1:1")

    def test_a_rank_that_does_not_come(self):
        graph = common.graph("cond_v1")
        for ranks in ((0, 1), (1, 2)):
            answers = self.job([graph] * 3, ranks=ranks, keywords=dict(wait=0.5))
            self.assertEqual(set(answers), set(ranks))
            self.assert_all_raise(answers, spillway.DeadlineExceededError, "STOPPED",
                                  r"rank \d waited 0.5 s for")


def _nodes(graph):
    return [value for number, value in _wire.values(graph) if number == NODE]


class OpsOfHorovodTest(unittest.TestCase):
    """A graph with Horovod's ops, without Horovod."""

    def test_they_pass_untouched(self):
        graph = common.graph("horovod_like")
        for keywords in (SCOPE, dict(strategy="level", swapout_threshold=5, swapin_ahead=2,
                                     swapin_groupby=0, batch_size=64)):
            result = spillway.rewrite(graph, **keywords)
            self.assertGreater(result.report.swapped_tensor_count, 10)
            found = []
            for bytes_ in (graph, result.graph_def):
                found.append([bytes(node) for node in _nodes(bytes_)
                              if any(number == 2 and bytes(value).startswith(b"Horovod")
                                     for number, value in _wire.values(node))])
            self.assertGreater(len(found[0]), 40)
            self.assertEqual(found[0], found[1])
            self.assertEqual(spillway.strip(result.graph_def).graph_def, graph)

    def test_ranks_share_its_edits(self):
        graph = common.graph("horovod_like")
        answers = run_job("horovod", [graph, graph], keywords=SCOPE)
        self.assertTrue(answers[1][0] == spillway.rewrite(graph, **SCOPE).graph_def)


class HorovodTest(Transports, unittest.TestCase):
    TRANSPORT = "horovod"

    def test_no_horovod(self):
        with self.assertRaisesRegex(TypeError, "Horovod cannot be imported"):
            spillway.horovod.rewrite(b"")
        with self.assertRaisesRegex(TypeError, "hvd has no rank"):
            spillway.horovod.rewrite(b"", object())
        with self.assertRaisesRegex(TypeError, "need folder="):
            spillway.horovod.rewrite(b"", rank=0)


class FolderTest(Transports, unittest.TestCase):
    TRANSPORT = "folder"

    def test_what_earlier_runs_left_is_not_taken_for_an_answer(self):
        first, second = common.graph("cond_v1"), common.graph("mnist_deep")
        with tempfile.TemporaryDirectory() as folder:
            run_job(folder, [first] * 2, keywords=SCOPE)
            # Ends while it waits: its files are those of a job that was killed.
            run_job(folder, [first] * 2, ranks=(1,), keywords=dict(wait=0.2))
            run_job(folder, [first] * 2, ranks=(0,), keywords=dict(wait=0.2))
            answers = run_job(folder, [second] * 2, keywords=SCOPE)
            expected = spillway.rewrite(second, **SCOPE).graph_def
            self.assertTrue(answers[0][0] == answers[1][0] == expected)
            # One folder is left, and the file that names it.
            self.assertEqual(len(os.listdir(folder)), 2)

    def test_a_folder_that_cannot_be_used(self):
        with tempfile.NamedTemporaryFile() as file:
            for rank in (0, 1):
                with self.assertRaisesRegex(spillway.UnavailableError, "cannot be used"):
                    spillway.horovod.rewrite(b"", folder=file.name, rank=rank, size=2, local_size=1)

    def test_who_this_is_is_from_the_launcher(self):
        graph = common.graph("cond_v1")
        names = dict(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="1",
                     OMPI_COMM_WORLD_LOCAL_SIZE="1")
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict(os.environ, names):
                result = spillway.horovod.rewrite(graph, folder=folder, **SCOPE)
            self.assertEqual(result.graph_def, spillway.rewrite(graph, **SCOPE).graph_def)
            self.assertIsNone(result.patch)
            with self.assertRaisesRegex(TypeError, "no launcher says"):
                spillway.horovod.rewrite(graph, folder=folder)
            for numbers in (dict(rank=2, size=2, local_size=1), dict(rank=0, size=1, local_size=2)):
                with self.assertRaisesRegex(ValueError, "rank is 0 to size - 1"):
                    spillway.horovod.rewrite(graph, folder=folder, **numbers)


if __name__ == "__main__":
    unittest.main()
