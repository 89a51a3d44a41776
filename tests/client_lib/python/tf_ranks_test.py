"""The samples with several GPUs, which CPUs stand for: a tower on each in one process, and a process
for each, with a stand-in for Horovod. real_horovod.py has the real one."""

import socket
import unittest

import common
import tf_common  # pylint: disable=unused-import  # The environment of TensorFlow.
import ranks

SIZE = 2


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@common.takes_long
class SamplesTest(unittest.TestCase):

    def test_a_tower_per_gpu_asks_once(self):
        with ranks.counting_server() as (address, asked):
            before = ranks.start("towers.py", "--no-swaps")
            after = ranks.start("towers.py", "--gpu-memory", ranks.GPU_MEMORY, "--server", address)
            outputs = [ranks.read(ranks.finish([process])) for process in (before, after)]
            ranks.check_same(self, *outputs, size=1)
            self.assertEqual(asked(), 1)

    def test_a_process_per_gpu_asks_once(self):
        with ranks.counting_server() as (address, asked):
            before = ranks.start_with_stand_in(SIZE, free_port(), "--no-swaps")
            after = ranks.start_with_stand_in(SIZE, free_port(), "--server", address,
                                              "--gpu-memory", ranks.GPU_MEMORY)
            outputs = [ranks.read(ranks.finish(processes)) for processes in (before, after)]
            ranks.check_same(self, *outputs, size=SIZE)
            self.assertEqual(asked(), 1)


if __name__ == "__main__":
    unittest.main()
