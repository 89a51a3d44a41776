"""Spellings of tensors and devices in a GraphDef."""
import re

_GPU = re.compile(r"/(?:device:)?gpu:(\d+|\*)", re.IGNORECASE)
_CPU = re.compile(r"/(?:device:)?cpu:(\d+|\*)", re.IGNORECASE)


def tensor(spelled):
    """`x` and `x:0` are one tensor: the long spelling."""
    node, colon, port = spelled.rpartition(":")
    return spelled if colon and port.isdigit() and node else spelled + ":0"


def node(spelled):
    """The node of a tensor or of a control input."""
    return tensor(spelled.lstrip("^")).rpartition(":")[0]


def data_inputs(node_def):
    """The tensors a node reads, in order."""
    return [tensor(i) for i in node_def.input if not i.startswith("^")]


def control_inputs(node_def):
    """The nodes a node waits for, in order."""
    return [i[1:] for i in node_def.input if i.startswith("^")]


def is_cpu(device):
    """Whether a device spelling names a CPU."""
    return _CPU.search(device) is not None


def gpu_number(device):
    """The number of the GPU that a device spelling names; 0 if it names any, or none."""
    found = _GPU.search(device)
    return int(found.group(1)) if found and found.group(1).isdigit() else 0


def gpu_count(graph_def):
    """How many GPUs the nodes name: one more than the highest number."""
    found = [_GPU.search(n.device) for n in graph_def.node if n.device]
    return max([1 + int(m.group(1)) for m in found if m and m.group(1).isdigit()], default=0)


def on_cpus(device):
    """A GPU's place among the CPUs of one process: GPU k becomes CPU k + 1."""
    def place(match):
        number = match.group(1)
        return "/device:CPU:%d" % (1 if number == "*" else int(number) + 1)
    return _GPU.sub(place, device)
