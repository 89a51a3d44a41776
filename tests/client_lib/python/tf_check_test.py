"""spillway.check on real traces, and the same traces as profiles."""

import math
import unittest

import common
import tf_common
from tf_common import tf, tf1
from truth import feeds, graphs, train  # pylint: disable=wrong-import-order

import spillway

GRAPH = "resnet50_tf1_b4"


def traced(graph_bytes, name=GRAPH):
    """The RunMetadata of the second step, with CPU:1 for the device."""
    data = graphs.Graph(common.GRAPHS / name)
    graph_def = train.place(tf1.GraphDef.FromString(graph_bytes), True)
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(graph_def, name="")
    metadata = tf1.RunMetadata()
    with tf1.Session(graph=graph, config=train.session_config(2, grappler=False)) as session:
        for operation in data.init_ops:
            session.run(operation)
        for step in range(2):
            session.run(data.step_calls[0], feeds.feed_dict(data.feed_spec, step),
                        options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE),
                        run_metadata=metadata)
    return metadata


class CheckTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.graph = common.graph(GRAPH, shapes=True)
        cls.result = spillway.rewrite(cls.graph, strategy="scope", min_tensor_bytes=4096)
        cls.metadata = traced(cls.result.graph_def)

    def test_all_swaps_ran_and_moved_what_was_planned(self):
        found = spillway.check(self.result.report, self.metadata)
        self.assertTrue(found.as_planned, str(found))
        report = self.result.report
        self.assertEqual(found.swap_outs.seen, sum(d.swap_out_count for d in report.devices))
        self.assertEqual(found.swap_ins.seen, sum(d.swap_in_count for d in report.devices))
        self.assertGreater(found.swap_outs.seen, 100)
        # Planned bytes are without tensors of unknown size (reserved space of batch norms).
        unknown = [swap for swap in report.swaps if swap.size_bytes is None]
        self.assertEqual(found.unknown_size_count, len(unknown))
        elements = {node.node_name: math.prod(
            dim.size for dim in node.output[0].tensor_description.shape.dim)
                    for device in self.metadata.step_stats.dev_stats for node in device.node_stats
                    if node.output}
        more = [4 * elements[swap.swap_out] for swap in unknown]  # Of floats.
        self.assertEqual(found.bytes_out.seen - sum(more),
                         sum(d.swap_out_bytes for d in report.devices))
        self.assertEqual(
            found.bytes_in.seen - sum(len(s.swap_ins) * size for s, size in zip(unknown, more)),
            sum(d.swap_in_bytes for d in report.devices))
        self.assertRegex(str(found), "^as planned: ")

    def test_the_figures_are_those_of_tensorflow_s_own_reader(self):
        found = spillway.check(self.result.report, self.metadata.SerializeToString())
        stats = {d.device: d.node_stats for d in self.metadata.step_stats.dev_stats}
        nodes = [node for device in stats.values() for node in device]
        self.assertEqual(
            found.step_time_ns.seen,
            max(n.all_start_nanos + n.all_end_rel_nanos for n in nodes) -
            min(n.all_start_nanos for n in nodes))
        device, = found.devices
        self.assertTrue(device.seen_as.endswith("/device:CPU:1"))
        records = sorted((record.alloc_micros, record.alloc_bytes)
                         for node in stats[device.seen_as] for memory in node.memory
                         for record in memory.allocation_records)
        peak = max(sum(size for _, size in records[:i]) for i in range(len(records) + 1))
        self.assertEqual(device.step_peak_bytes.seen, peak)
        # Between CPUs of one process a swap frees nothing, so the allocator's peak is the one that
        # the simulator forecasts without swaps.
        before = self.result.report.forecast_before.devices[0]
        self.assertAlmostEqual(peak / (before.peak_bytes - before.resident_bytes), 1, delta=0.05)
        self.assertIn("between them free no memory", " ".join(str(found).split()))


class ProfileTest(unittest.TestCase):
    """The RunMetadata of the rewritten graph as the profile of the next rewrite."""

    def test_the_next_plan_is_made_with_what_was_measured(self):
        graph = common.graph(GRAPH, shapes=True)
        keywords = dict(strategy="scope", min_tensor_bytes=4096)
        first = spillway.rewrite(graph, **keywords)
        metadata = traced(first.graph_def)
        second = spillway.rewrite(graph, profile=metadata, **keywords)
        before = spillway.check(first.report, metadata)
        after = spillway.check(second.report, metadata)
        # The preset is a GPU; this was a CPU, whose step is now simulated. One thread runs one op
        # at a time, so the step takes the sum of the ops and TensorFlow's time between them.
        self.assertGreater(before.step_time_ns.share, 3)
        self.assertGreater(after.step_time_ns.share, 0.8)
        self.assertLess(after.step_time_ns.share, 1.6)
        names = {node.name for node in tf1.GraphDef.FromString(graph).node}
        measured = sum(node.op_end_rel_nanos - node.op_start_rel_nanos
                       for device in metadata.step_stats.dev_stats for node in device.node_stats
                       if node.node_name in names)
        computing = second.report.forecast_before.devices[0].compute_ns
        self.assertAlmostEqual(computing / measured, 1, delta=0.05)

    def test_a_tuned_plan_from_a_profile_trains_to_the_same_loss(self):
        name = "bert_tiny"
        data = graphs.Graph(common.GRAPHS / name)
        graph = common.graph(name)
        shapes = {spec["name"].partition(":")[0]: spec["shape"] for spec in data.feed_spec}
        metadata = traced(graph, name=name)
        untuned = spillway.rewrite(graph, feeds=shapes, profile=metadata).report.forecast_before
        budget = int(0.9 * untuned.devices[0].peak_bytes)
        # Of swaps: by the measured times, recomputation alone may be faster.
        tuned = spillway.rewrite(graph, feeds=shapes, profile=metadata, gpu_memory_bytes=budget,
                                 recompute="off")
        self.assertEqual(tuned.report.forecast_after.fit, "FITS")
        self.assertGreater(tuned.report.swapped_tensor_count, 0)
        found = spillway.check(tuned.report, traced(tuned.graph_def, name=name))
        self.assertTrue(found.as_planned, str(found))
        self.assertEqual(train.train(data, tuned.graph_def).losses,
                         train.train(data, graph).losses)


if __name__ == "__main__":
    unittest.main()
