"""Runs the samples with several GPUs, as processes of their own, and reads their output."""

import contextlib
import os
import re
import subprocess
import sys
import urllib.request

import common

SAMPLES = common.PACKAGE / "samples"
# In which both samples swap on each GPU; the steps take a little less than 9 MiB as they are.
GPU_MEMORY = "8MiB"
STEPS = 4


class Rank:
    """What one printed. Towers are a single one."""

    def __init__(self):
        self.losses, self.graph, self.swapped = [], None, 0


def read(output):
    """{rank: Rank} of a sample's output, with or without a launcher's marks before the lines."""
    ranks = {}
    for line in output.splitlines():
        found = re.search(r"(?:rank (\d+): )?(step \d+ loss|graph|(\d+) tensors will) ?(\S*)", line)
        if found is None:
            continue
        rank = ranks.setdefault(int(found[1] or 0), Rank())
        if found[3]:
            rank.swapped = int(found[3])
        elif found[2] == "graph":
            rank.graph = found[4]
        else:
            rank.losses.append(found[4])
    return ranks


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(common.PACKAGE), **more}


def finish(processes):
    """Their output; whichever still runs at the end is killed."""
    outputs = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=common.PATIENCE_S)
            if process.returncode != 0:
                raise RuntimeError("a sample ended with %d:\n%s" % (process.returncode, errors[-3000:]))
            outputs.append(output)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return "".join(outputs)


def start(name, *flags, env=None):
    return subprocess.Popen([sys.executable, str(SAMPLES / name), *flags], text=True,
                            env=env or environment(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def start_with_stand_in(size, port, *flags):
    """process_per_gpu.py on `size` ranks of this machine, with the stand-in for Horovod."""
    stand_in = common.ROOT / "tests" / "client_lib" / "python" / "stand_in"
    return [start("process_per_gpu.py", *flags, env=environment(
        PYTHONPATH="%s:%s" % (common.PACKAGE, stand_in), STAND_IN_PORT=str(port),
        HOROVOD_RANK=str(rank), HOROVOD_LOCAL_RANK=str(rank), HOROVOD_SIZE=str(size),
        HOROVOD_LOCAL_SIZE=str(size))) for rank in range(size)]


@contextlib.contextmanager
def counting_server():
    """A spillwayd: its address, and a function that says how many rewrites it was asked for."""
    with subprocess.Popen(
            [str(common.BUILD / "bin" / "spillwayd"), "--listen", "127.0.0.1:0",
             "--metrics-listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            said = [process.stdout.readline().split() for _ in range(2)]
            address = next(line[-1] for line in said if "listening" in line)
            url = next(line[-1] for line in said if line[0] == "metrics")

            def asked():
                text = urllib.request.urlopen(url, timeout=common.PATIENCE_S).read().decode()
                counts = re.findall(r'^spillway_requests_total\{.*method="Rewrite.* (\S+)$', text,
                                    re.MULTILINE)
                assert counts, "the server has no such metric"
                return sum(map(float, counts))

            yield address, asked
        finally:
            process.terminate()


def check_same(test, before, after, size):
    """That the ranks trained to the same bits with swaps as without, each on its own data, and that
    all had the same graph, another than without."""
    test.assertEqual((sorted(before), sorted(after)), (list(range(size)),) * 2)
    for rank in range(size):
        test.assertEqual(len(before[rank].losses), STEPS)
        test.assertEqual(after[rank].losses, before[rank].losses)
        test.assertGreater(after[rank].swapped, 0)
        test.assertEqual(before[rank].swapped, 0)
    test.assertEqual(len({tuple(rank.losses) for rank in before.values()}), size)
    if size > 1:
        graphs = {rank.graph for rank in after.values()}
        test.assertEqual(len(graphs), 1)
        test.assertNotIn(None, graphs)
        test.assertNotEqual(graphs, {rank.graph for rank in before.values()})
