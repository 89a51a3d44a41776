"""Grappler's passes as a GPU would have them, on a machine without one.

A virtual cluster (grappler/clusters/virtual_cluster.cc) answers what passes ask of a GPU: above all
its compute capability, by which the layout pass chooses (generic_layout_optimizer.cc).
"""
from google.protobuf import text_format
from tensorflow.core.protobuf import (
    config_pb2, device_properties_pb2, meta_graph_pb2, rewriter_config_pb2)
from tensorflow.python.grappler import cluster, tf_optimizer

from truth import names, train

TASK = "/job:localhost/replica:0/task:0"


def config(text=""):
    """A ConfigProto of its text."""
    return text_format.Parse(text, config_pb2.ConfigProto())


def after_pass(name, graph_def, fetches, feeds=()):
    """A GraphDef after one of Grappler's passes, and nothing else, on this machine."""
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(graph_def)
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    for feed in feeds:
        # As Grappler's items of signatures name feeds.
        meta.signature_def["s"].inputs[feed].name = feed + ":0"
    options = config_pb2.ConfigProto()
    rewrites = options.graph_options.rewrite_options
    rewrites.optimizers.append(name)
    rewrites.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    rewrites.min_graph_nodes = -1
    rewrites.fail_on_optimizer_errors = True
    return tf_optimizer.OptimizeGraph(options, meta, verbose=False)


def full_device(device):
    """As the placer would spell it: what names no device is on the first GPU."""
    if names.is_cpu(device):
        return TASK + "/device:CPU:0"
    return "%s/device:GPU:%d" % (TASK, names.gpu_number(device))


def virtual_machine(gpus, capability, memory_bytes):
    """A cluster of GPUs of that compute capability, such as 7.0, and their host."""
    gpu = device_properties_pb2.DeviceProperties(
        type="GPU", vendor="NVIDIA", model="virtual", frequency=1400, num_cores=80,
        environment={"architecture": str(capability), "cuda": "12020", "cudnn": "8900"},
        memory_size=memory_bytes, bandwidth=900_000_000)
    devices = {"%s/device:GPU:%d" % (TASK, number): gpu for number in range(gpus)}
    devices[TASK + "/device:CPU:0"] = device_properties_pb2.DeviceProperties(
        type="CPU", frequency=2000, num_cores=16)
    return cluster.Cluster(devices=[
        device_properties_pb2.NamedDevice(name=name, properties=properties)
        for name, properties in devices.items()])


def optimized(graph_bytes, fetches, capability, memory_bytes, used=None):
    """What Grappler makes of a graph, as bytes. `used`: a ConfigProto, if not the default."""
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(train.parse(graph_bytes))
    gpus = max(1, names.gpu_count(meta.graph_def))
    for node in meta.graph_def.node:
        node.device = full_device(node.device)
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    options = config_pb2.ConfigProto()
    if used is not None:
        options.CopyFrom(used)
    rewrites = options.graph_options.rewrite_options
    rewrites.min_graph_nodes = -1
    # As in a session: a pass that fails is left out, such as layout at a dropout's SelectV2.
    rewrites.fail_on_optimizer_errors = False
    rewrites.meta_optimizer_timeout_ms = -1  # On a busy machine, too, all of them.
    machine = virtual_machine(gpus, capability, memory_bytes)
    return tf_optimizer.OptimizeGraph(options, meta, cluster=machine,
                                      verbose=False).SerializeToString()
