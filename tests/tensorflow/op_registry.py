"""TensorFlow's op registry, and the tables for C++ that are made of it."""

import argparse
import sys


def all_ops():
    """The OpDefs of every op that is registered, and TensorFlow's version."""
    import tensorflow as tf
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return ops.op, tf.__version__


def write_or_check(description, path, table):
    """The command line of a script that writes `table()` to a file, `path` for one, or compares."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("out", help=path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    text = table()
    if args.check:
        with open(args.out, encoding="ascii") as f:
            same = f.read() == text
        print("%s: %s" % (args.out, "as TensorFlow has it" if same
                          else "DIFFERS: run without --check"))
        sys.exit(0 if same else 1)
    with open(args.out, "w", encoding="ascii") as f:
        f.write(text)
    print("wrote %s" % args.out)
