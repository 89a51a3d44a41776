"""Writes the RunMetadata of one training step of a test graph: a profile for the tests.

    python tests/tensorflow/make_run_metadata.py tests/graphs/NAME OUT.pb.gz

The second step, on the CPU with one thread, without Grappler and oneDNN. Times differ from run to
run, so the tests that quote them have to be changed with the file.
"""
import gzip
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

from truth import feeds, graphs  # noqa: E402


def main():
    import tensorflow.compat.v1 as tf

    graph = graphs.Graph(sys.argv[1])
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    fetches = graph.meta["fetches"]
    with tf.Graph().as_default(), tf.Session(config=config) as session:
        tf.import_graph_def(tf.GraphDef.FromString(graph.bytes), name="")
        for name in [fetches["init_op"], *fetches.get("extra_init_ops", [])]:
            session.run(name)
        session.run(fetches["train_op"], feeds.feed_dict(graph.feed_spec, 0))
        metadata = tf.RunMetadata()
        session.run(
            fetches["train_op"],
            feeds.feed_dict(graph.feed_spec, 1),
            options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
            run_metadata=metadata,
        )
    pathlib.Path(sys.argv[2]).write_bytes(gzip.compress(metadata.SerializeToString(), 9, mtime=0))


if __name__ == "__main__":
    main()
