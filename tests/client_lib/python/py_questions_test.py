"""Calls that rewrite nothing, in process and on a server."""

import unittest

import common
import spillway

# Small, and its batch is open.
GRAPH = "mnist_deep"


class QuestionsTest(unittest.TestCase):

    def setUp(self):
        self.graph = common.graph(GRAPH, shapes=True)

    def everywhere(self):
        """A client in this process, and one of a server."""
        yield spillway.Client()
        with common.server() as address:
            yield spillway.Client(address, retries=0)

    def test_inspect_and_its_tensors(self):
        for client in self.everywhere():
            tensors = []
            summary = client.inspect(self.graph, batch_size=8, on_tensors=tensors.extend)
            self.assertEqual(summary, spillway.inspect(self.graph, batch_size=8))
            names = [tensor.tensor for tensor in tensors]
            self.assertEqual(len(names), len(set(names)))
            self.assertGreater(len(names), summary.tensor_count)
            largest = summary.largest_tensors[0]
            self.assertIn((largest.tensor, largest.size_bytes),
                          [(tensor.tensor, tensor.size_bytes) for tensor in tensors])

    def test_simulate(self):
        for client in self.everywhere():
            options = {"batch_size": 8, "gpu_memory_bytes": 1 << 20}  # Its variables are larger.
            report = client.simulate(self.graph, **options)
            self.assertEqual(report.forecast.fit, "DOES_NOT_FIT")
            self.assertEqual(report, spillway.simulate(self.graph, **options))

    def test_explore_tells_each_size_once_and_then_all_again(self):
        for client in self.everywhere():
            told = []
            report = client.explore(self.graph, sizes=[32, 8, 16], no_budget=True,
                                    on_size=told.append)
            self.assertEqual([size.size for size in report.sizes], [8, 16, 32])
            self.assertEqual(tuple(sorted(told, key=lambda size: size.size)), report.sizes)
            self.assertEqual(report, spillway.explore(self.graph, sizes=[32, 8, 16],
                                                      no_budget=True))

    def test_diff_finds_the_swaps_of_a_rewrite(self):
        result = spillway.rewrite(self.graph, strategy="scope")
        for client in self.everywhere():
            diff = client.diff(self.graph, result.graph_def)
            self.assertEqual(len(diff.swaps), result.report.swapped_tensor_count)
            self.assertTrue(client.diff(self.graph, self.graph).identical)

    def test_a_client_rewrites_and_strips_where_it_was_made_for(self):
        for client in self.everywhere():
            result = client.rewrite(self.graph, strategy="scope")
            self.assertEqual(client.strip(result.graph_def).graph_def, self.graph)
            self.assertEqual(client.capabilities().version, spillway.library_version())

    def test_what_a_callback_raises_ends_the_call(self):
        def fail(_):
            raise RuntimeError("enough")
        for client in self.everywhere():
            with self.assertRaisesRegex(RuntimeError, "enough"):
                client.explore(self.graph, sizes=range(1, 200), no_budget=True, on_size=fail)
            with self.assertRaisesRegex(RuntimeError, "enough"):
                client.inspect(self.graph, on_tensors=fail)

    def test_timeout_and_progress(self):
        with self.assertRaises(spillway.DeadlineExceededError):
            spillway.explore(self.graph, timeout=0)
        stages = []
        spillway.diff(self.graph, self.graph, progress=lambda stage, *_: stages.append(stage))
        self.assertEqual(stages, ["rewriting"])

    def test_a_keyword_that_does_not_exist(self):
        for call in (spillway.simulate, spillway.explore, spillway.inspect):
            with self.assertRaisesRegex(TypeError, "has no option lb"):
                call(self.graph, lb=3)
        with self.assertRaisesRegex(TypeError, "^retries needs server="):
            spillway.Client(retries=3)


if __name__ == "__main__":
    common.set_up()
    unittest.main()
