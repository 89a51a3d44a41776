"""Which tensors really go from one device to another.

Read from the partition graphs of a step, as given to the executors, after placement, pruning and
all optimizers. An edge between devices is there a _Send and a _Recv with the same rendezvous key.

Not counted: control edges (the zero-size constant `.../ctrl/_N` is sent for them), feeds and
fetches.
"""
import re
from typing import NamedTuple

from truth import names

_SENDS = ("_Send", "_HostSend")
_RECEIVES = ("_Recv", "_HostRecv")
_CONTROL_CONSTANT = re.compile(r"/ctrl/_\d+$")


class Crossing(NamedTuple):
    """One tensor that one node reads on another device."""
    source: str  # device, as CPU:0
    tensor: str
    target: str
    consumer: str

    def __str__(self):
        return "%s, %s -> %s, read by %s" % tuple(self)


def short(device):
    """/job:localhost/replica:0/task:0/device:CPU:1 -> CPU:1."""
    return device.rpartition("device:")[2]


class Placed(NamedTuple):
    """A node as the executors have it."""
    device: str
    op: str
    inputs: tuple  # the tensors it reads


def nodes(partitions):
    """{node name: Placed} of everything that the executors were given."""
    return {n.name: Placed(short(n.device), n.op, tuple(names.data_inputs(n)))
            for partition in partitions for n in partition.node}


def _key(node):
    return (node.attr["tensor_name"].s, node.attr["send_device"].s, node.attr["recv_device"].s)


def find(partitions):
    """The set of crossings in the partition graphs of one session call."""
    sent = {}  # rendezvous key: (device, tensor)
    received = {}  # rendezvous key: (device, readers)
    for partition in partitions:
        by_name = {n.name: n for n in partition.node}
        receivers = {}
        for node in partition.node:
            if node.op in _SENDS:
                producer = by_name[names.node(node.input[0])]
                if producer.op == "_Arg":
                    continue
                if producer.op == "Const" and _CONTROL_CONSTANT.search(producer.name):
                    continue
                sent[_key(node)] = (short(node.device), names.tensor(node.input[0]))
            elif node.op in _RECEIVES:
                readers = receivers.setdefault(node.name, [])
                received[_key(node)] = (short(node.device), readers)
        for node in partition.node:
            if node.op == "_Retval":
                continue
            for tensor in names.data_inputs(node):
                if names.node(tensor) in receivers:
                    receivers[names.node(tensor)].append(node.name)
    found = set()
    for key, (source, tensor) in sent.items():
        if key not in received:
            raise ValueError("%s is sent and not received" % tensor)
        target, readers = received[key]
        found.update(Crossing(source, tensor, target, reader) for reader in readers)
    return found
