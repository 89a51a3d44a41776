"""Writes client_lib/format/attribute_names.inc from TensorFlow's own op registry.

    python tests/tensorflow/make_attribute_table.py OUT [--check]

One row per name that an attribute of any op has, in order. With --check, OUT is compared with what
would be written and the exit code says whether they agree.
"""
import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

HEADER = """\
// Made by tests/tensorflow/make_attribute_table.py from the op registry of TensorFlow %s; do not
// edit. The names of all attributes of its ops, in order.
"""


def table():
    import tensorflow as tf
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    names = sorted({attr.name for op in ops.op for attr in op.attr})
    return HEADER % tf.__version__ + "".join('SPILLWAY_ATTRIBUTE("%s")\n' % name for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", help="client_lib/format/attribute_names.inc")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    text = table()
    if args.check:
        with open(args.out, encoding="ascii") as f:
            same = f.read() == text
        print("attribute names: %s" % ("as TensorFlow has them" if same
                                       else "DIFFERENT: run without --check"))
        sys.exit(0 if same else 1)
    with open(args.out, "w", encoding="ascii") as f:
        f.write(text)
    print("wrote %d names to %s" % (text.count("\nSPILLWAY_ATTRIBUTE"), args.out))


if __name__ == "__main__":
    main()
