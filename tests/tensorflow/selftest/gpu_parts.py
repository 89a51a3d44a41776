#!/usr/bin/env python3
"""Tests gpu_cuda.py with a library that stands for CUDA's (fake_cuda.cc), and the order and the end of time of
on_a_gpu.py, whose processes are played: `gpu_parts.py LIBRARY`, with the Python package at hand. The last
line is `N passed, N failed`."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types

FOLDER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(FOLDER))
import gpu_cuda  # noqa: E402  pylint: disable=wrong-import-position
import gpu_worker  # noqa: E402  pylint: disable=wrong-import-position
import on_a_gpu  # noqa: E402  pylint: disable=wrong-import-position
LIBRARY = sys.argv[1]


def run(do, **job):
    """(exit code, results), as on_a_gpu.py runs it."""
    job = {"do": do, "seconds": 100, "library": LIBRARY, "rehearse": True, **job}
    done = subprocess.run([sys.executable, str(FOLDER / "gpu_cuda.py"), json.dumps(job)],
                          capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def near(found, wanted):
    return abs(found - wanted) <= 1e-3 * wanted


def rates_are_those_of_the_library():
    """20 GB/s out, 10 GB/s in, 1 TFLOP/s, and 2 of halves (fake_cuda.cc)."""
    code, results = run("copies")
    last = results[-1]
    assert code == 0 and near(last["out"], 20e9) and near(last["in_while_out"], 10e9), last
    assert near(last["latency_s"], 1024 / 20e9), last
    assert set(last["pinned_s_per_gib"]) == {"0.25", "1", "4", "16", "32"}, last
    products = run("convolutions", seconds=0)[1][-1]["products"]
    assert set(products) == {"%s %s" % (name, kind) for name in gpu_cuda.PRODUCTS
                             for kind in gpu_cuda.TYPES}, products
    for name, rate in products.items():
        assert near(rate, 2e12 if "half" in name else 1e12), products


def each_convolution_is_measured_in_both_layouts_and_types():
    code, results = run("convolutions")
    shapes = sum(len(list(network())) * len(batches)
                 for network, batches in gpu_cuda.NETWORKS.values())
    assert code == 0 and len(results) == 4 * shapes + 1, len(results)
    for found in results[:-1]:
        assert "failed" not in found, found
        side, wide_in, wide_out, window, stride, _ = found["shape"]
        out = (side + 2 * (window // 2) - window) // stride + 1
        size = 2 if found["type"] == "half" else 4
        wanted = size * found["batch"] * (wide_in * side ** 2 + wide_out * out ** 2)
        assert [kernel["of"] for kernel in found["kernels"]] == [
            "forward", "input gradient", "filter gradient"], found
        for kernel in found["kernels"]:
            assert kernel["bytes"] == wanted, found
            # 1 ms for each MB without a workspace, half of that with one of input and output.
            assert [memory for _, memory in kernel["algorithms"]] == [wanted, 0], found
            assert near(kernel["algorithms"][1][0], wanted * 1e-9), found
    groups = results[-1]["groups"]
    assert len(groups) == 4 and results[-1]["left_out"] == 0, groups
    for group in groups.values():
        assert near(group["at_limit_mib"]["0"]["slower"], 2), group
        assert near(group["at_limit_mib"]["256"]["slower"], 1), group
        assert near(group["largest_share"], 1), group


def a_workspace_that_cannot_be_had_is_none():
    """What failed for its workspace does not count."""
    results = run("convolutions", workspace=64)[1]
    assert all(memory == 0 for found in results[:-1] for kernel in found["kernels"]
               for _, memory in kernel["algorithms"]), results[0]


def sums_by_hand():
    """Two kernels: 1 s with 100 MiB or 3 s with none; 2 s with 2 GiB alone."""
    measured = [{"layout": "NCHW", "type": "half", "kernels": [
        {"bytes": 100 << 20, "algorithms": [[1, 100 << 20], [3, 0]]},
        {"bytes": 1 << 30, "algorithms": [[2, 2 << 30]]}, {"failed": "error 9"}]}]
    group = gpu_cuda.summary(measured)["groups"]["NCHW half"]
    assert group["kernels"] == 2 and group["largest_share"] == 2, group
    limits = group["at_limit_mib"]
    assert near(limits["32"]["slower"], 5 / 3) and limits["32"]["without_any"] == 1, limits
    assert near(limits["256"]["slower"], 1) and limits["256"]["without_any"] == 1, limits


def shapes_are_those_of_the_networks():
    """Of ResNet-50 v1.5 a stride is in the 3x3, and it has 22 shapes; multiply-adds of a depthwise one."""
    shapes = list(gpu_cuda.resnet50())
    assert len(shapes) == len(set(shapes)) == 22, len(shapes)
    assert (224, 3, 64, 7, 2, 1) in shapes and (14, 512, 512, 3, 2, 1) in shapes, shapes
    assert (7, 2048, 512, 1, 1, 1) in shapes and (56, 256, 512, 1, 2, 1) in shapes, shapes
    unet = list(gpu_cuda.unet())
    assert (16, 512, 1024, 3, 1, 1) in unet and (32, 1536, 512, 3, 1, 1) in unet, unet
    assert (7, 512, 512, 3, 1, 512) not in gpu_cuda.mobilenet()
    assert (14, 512, 512, 3, 1, 512) in gpu_cuda.mobilenet(), list(gpu_cuda.mobilenet())


def an_end_of_time_leaves_out_the_rest():
    start = time.monotonic()
    results = run("convolutions", seconds=0)[1]
    assert len(results) == 1 and results[0]["left_out"] > 100, results
    assert time.monotonic() - start < 60


def a_machine_without_cuda_is_told_so():
    code, results = run("copies", library="/nowhere/libcudart.so")
    assert code == 1 and results == [{"failed": "there is no libcudart.so"}], results


# ---- on_a_gpu.py, of which processes and plans are played.

RATES = {**dict.fromkeys(gpu_worker.MOVING, 5e11), "transpose": 2.5e11, "elementwise": 1e12,
         "convolution_nchw": 2e13, "convolution_nhwc": 3e13, "half_convolution_nchw": 2e13,
         "half_convolution_nhwc": 9e13, "depthwise_convolution": 1e12, "matmul": 6e13,
         "narrow_matmul": 3e13, "batch_matmul": 2e13, "half_matmul": 1.2e14}


class Played(on_a_gpu.Bench):
    """A bench whose largest batch is 10, and whose processes answer at once."""

    def __init__(self, folder, **flags):
        super().__init__(types.SimpleNamespace(**{
            "rehearse": False, "deterministic": False, "grappler": "on", "allocator": "bfc",
            "cuda_library": None, "minutes": 12, "out": pathlib.Path(folder), "card": None,
            "programs": ["a", "b"], "steps": 3, **flags}))
        self.order, self.jobs = [], []

    def work(self, do, most=0, file="", environment=None, **job):
        self.jobs.append((do, job, environment))
        if do == "copies":
            return {"failed": "error 2"}
        if do == "describe":
            return {"gpu": "played", "tensorflow": "2", "failed": {},
                    "machine": {"gpu_memory_bytes": 80 << 30, "host_memory_bytes": 1, "launch_s": 0,
                                "d2h_bytes_per_s": 1, "copy_latency_s": 0,
                                **gpu_worker.efficiencies(RATES)}}
        return {}

    def begin_graph(self, program, batch):
        return types.SimpleNamespace(result=lambda: (b"", {}))

    def largest_batch(self, program):
        return 10

    def row(self, program, batch, strategy, switch=""):
        self.order.append((program, batch, strategy, switch))

    def write(self, found):
        pass


def all_graphs_as_they_came_train_first():
    with tempfile.TemporaryDirectory() as folder:
        bench = Played(folder)
        bench.run()
        preset = json.loads((bench.out / "preset.json").read_text())
    assert [job[0] for job in bench.jobs] == ["convolutions", "copies", "describe"], bench.jobs
    assert bench.flags.card == 16
    assert bench.order[:4] == [("a", 20, "none", ""), ("b", 20, "none", ""), ("a", 40, "none", ""),
                               ("b", 40, "none", "")], bench.order
    assert [row[2] for row in bench.order[4:12:2]] == ["budget", "budget", "budget+off",
                                                       "budget+all"], bench.order
    assert bench.order[12:] == [("a", 40, "budget", switch) for switch in on_a_gpu.SWITCHES]
    # A failed part costs its own time.
    assert bench.failures == ["copies: error 2"], bench.failures
    shares = {given["kernels"]: given["efficiency"] for given in preset["efficiencies"]}
    assert len(shares) == 16 and preset["peak_flops"] == 6e13, preset
    assert (shares["matmul"], shares["convolution_nhwc"], shares["half_matmul"]) == (1, 0.5, 2), shares
    assert (shares["elementwise"], shares["transpose"]) == (1, 0.25), shares
    assert (preset["mem_bytes_per_s"], preset["mem_eff"], preset["eff_conv"]) == (1e12, 1, 0.5), preset


def what_there_is_no_time_for_is_left_out():
    with tempfile.TemporaryDirectory() as folder:
        bench = Played(folder, minutes=0.1)
        on_a_gpu.Bench.row(bench, "a", 3, "none")
        assert bench.left_out == ["a, batch 3, none"] and not bench.rows, bench.left_out


def what_was_measured_stays_when_the_time_is_up():
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, "slow.py")
        script.write_text("import time\nprint('{\"a\": 1}')\nprint('{\"b\"', end='', flush=True)\n"
                          "time.sleep(60)\n")
        start = time.monotonic()
        found = on_a_gpu.Bench.work(Played(folder), "x", 15, str(script))
        assert time.monotonic() - start < 50
    assert found["lines"] == [{"a": 1}] and found["why"] == "no end after 15 s", found


def errors_of_memory_are_told_from_others():
    wrong = on_a_gpu.check_errors() or on_a_gpu.check_overlap()
    assert not wrong, wrong


def main():
    failed = 0
    tests = [test for name, test in sorted(globals().items())
             if isinstance(test, types.FunctionType) and test.__module__ == __name__
             and name not in ("main", "run", "near")]
    for test in tests:
        try:
            test()
        except AssertionError as error:
            failed += 1
            print("FAILED %s: %s" % (test.__name__, str(error)[:2000]))
    print("%d passed, %d failed" % (len(tests) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
