"""Run by test.sh: beside_tensorflow.py spillway|tensorflow SERVER, where the first is who is loaded first.

Both are in one process then, each with a protobuf, an Abseil and a gRPC of its own, and Python's grpcio
with a third.
"""

import sys

FIRST, SERVER = sys.argv[1:]
STEPS = 3

if FIRST == "spillway":
    import spillway
    spillway.capabilities()  # Loads the library.
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
# Loaded now: the arithmetic, its threads.
with tf.Session(graph=tf.Graph()) as first:
    pass

import spillway  # noqa: E402  pylint: disable=wrong-import-position
from spillway.tensorflow import rewrite_graph  # noqa: E402  pylint: disable=wrong-import-position


def build():
    """A net that trains; its loss and the op that trains it."""
    tf.set_random_seed(1)
    images = tf.placeholder(tf.float32, (64, 32), name="images")
    hidden = images
    for index in range(4):
        weights = tf.get_variable("w%d" % index, (32, 32), initializer=tf.random_normal_initializer(
            stddev=0.2, seed=index))
        hidden = tf.nn.relu(tf.matmul(hidden, weights))
    loss = tf.reduce_mean(tf.square(hidden - images), name="loss")
    return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


def train(swaps):
    """Losses, as bits; the bytes of the graph before it was edited."""
    random = np.random.default_rng(1)
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default() as graph:
        loss, step = build()
        before = graph.as_graph_def(add_shapes=True).SerializeToString()
        if swaps:
            report = rewrite_graph(strategy="scope", lb=1).report
            assert report.outcome == "REWRITTEN", report.outcome
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            losses = [float(session.run([loss, step], {"images:0": random.normal(size=(64, 32))})[0])
                      for _ in range(STEPS)]
    return [value.hex() for value in losses], before


def call_by_grpcio(graph):
    """The rewritten graph, by the stubs that the wheel brings."""
    import grpc
    from spillway_grpc.v1 import options_pb2, rewrite_service_pb2, rewrite_service_pb2_grpc
    options = options_pb2.RewriteOptions(scope=options_pb2.ScopeStrategy(lb=1))
    with grpc.insecure_channel(SERVER) as channel:
        stub = rewrite_service_pb2_grpc.RewriteServiceStub(channel)
        request = rewrite_service_pb2.RewriteRequest(graph_def=graph, options=options)
        return stub.Rewrite(request, timeout=60).graph_def


def main():
    plain, graph = train(swaps=False)
    swapped, _ = train(swaps=True)
    assert len(set(plain)) == STEPS, plain  # It trains.
    assert swapped == plain, (swapped, plain)
    here = spillway.rewrite(graph, strategy="scope", lb=1).graph_def
    there = spillway.rewrite(graph, strategy="scope", lb=1, server=SERVER).graph_def
    assert here == there == call_by_grpcio(graph), "three ways, other bytes"
    assert here != graph
    with open("/proc/self/maps") as maps:
        used = {line.split()[-1] for line in maps if "libspillway" in line}
    assert len(used) == 1 and used.pop().endswith("/spillway/lib/libspillway.so.0")
    print("trained to the same bits; TensorFlow", tf.__version__)


main()
