"""Ranks that meet at rank 0, at STAND_IN_PORT of this machine; which is which the environment says
as horovodrun does. Gradients are averaged in one op for all of them, in the order of the ranks."""

import multiprocessing.connection
import os
import time

import numpy as np
import tensorflow as tf

# Longest wait for a rank to come.
PATIENCE_S = 120

_peers = []  # Of rank 0: the others, in order. Of another: rank 0.


def rank():
    return int(os.environ["HOROVOD_RANK"])


def size():
    return int(os.environ["HOROVOD_SIZE"])


def local_rank():
    return int(os.environ["HOROVOD_LOCAL_RANK"])


def local_size():
    return int(os.environ["HOROVOD_LOCAL_SIZE"])


def init():
    address = ("127.0.0.1", int(os.environ["STAND_IN_PORT"]))
    if rank() > 0:
        _peers.append(_connected(address))
        _peers[0].send(rank())
        return
    with multiprocessing.connection.Listener(address, backlog=size()) as listener:
        came = [listener.accept() for _ in range(1, size())]
    _peers.extend(peer for _, peer in sorted(((peer.recv(), peer) for peer in came),
                                             key=lambda pair: pair[0]))


def _connected(address):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return multiprocessing.connection.Client(address)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _agreed(what, value, agree):
    """agree([value of each rank]), made by rank 0, on all ranks, which must be at the same `what`."""
    if rank() > 0:
        _peers[0].send((what, value))
        return _peers[0].recv()
    values = [value]
    for peer in _peers:
        other, theirs = peer.recv()
        assert other == what, "a rank is at %s, rank 0 at %s" % (other, what)
        values.append(theirs)
    answer = agree(values)
    for peer in _peers:
        peer.send(answer)
    return answer


def broadcast_object(value, root_rank=0, session=None, name=None):
    """Horovod's, with the session that it needs in graph mode."""
    del session
    return _agreed(name, value, lambda values: values[root_rank])


def _op(what, agree, tensors):
    """The agreed tensors, by an op that runs on the CPU."""
    with tf.device("/cpu:0"):
        agreed = tf.numpy_function(lambda *values: _agreed(what, values, agree), tensors,
                                   [tensor.dtype for tensor in tensors], name=what)
    for tensor, answer in zip(tensors, agreed):
        answer.set_shape(tensor.shape)
    return agreed


def _means(values):
    return [np.sum(of_ranks, axis=0, dtype=of_ranks[0].dtype) / of_ranks[0].dtype.type(size())
            for of_ranks in zip(*values)]


def broadcast_global_variables(root_rank):
    variables = tf.compat.v1.global_variables()
    values = _op("broadcast", lambda values: values[root_rank],
                 [variable.read_value() for variable in variables])
    return tf.group(*(variable.assign(value) for variable, value in zip(variables, values)))


class DistributedOptimizer(tf.compat.v1.train.Optimizer):
    """Around another, which applies the mean of all ranks' gradients."""

    def __init__(self, optimizer):
        super().__init__(name="Distributed", use_locking=False)
        self._optimizer = optimizer

    def compute_gradients(self, *args, **kwargs):
        gradients, variables = zip(*self._optimizer.compute_gradients(*args, **kwargs))
        return list(zip(_op("allreduce", _means, list(gradients)), variables))

    def apply_gradients(self, *args, **kwargs):
        return self._optimizer.apply_gradients(*args, **kwargs)
