"""Updates rewrite_core/graph/op_table.inc from TensorFlow's own op registry.

    python tests/tensorflow/make_op_table.py TABLE [--check]

One row per op: first what its OpDef says, then the columns that are written by hand, which are kept;
a new op does not forward its inputs and is not recomputed. To let Spillway know more, add a column
here and to the macro that reads the rows (rewrite_core/graph/op_registry.cc). With --check, TABLE is
compared with what would be written, and the exit code says whether they agree.
"""
import argparse
import os
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

HEADER = """\
// Made by tests/tensorflow/make_op_table.py from the op registry of TensorFlow %s.
// SPILLWAY_OP(name, outputs, output_names, is_stateful, forwards, run_again)
// The last two columns are written by hand, and kept when the table is made again.
// outputs: one word per output argument, separated by spaces. A word is
//   float, int32, ...   a fixed type
//   T                   the type in attribute T
//   T=float             the same, float where the attribute was stripped as the default
//   N*T                 N tensors of that type, N an int attribute (N=2*T: its default is 2)
//   []Tout              one tensor per type in the list attribute Tout
//   &...                a reference to a variable
// output_names: their names, by which nodes of a function's body read them; empty for one output.
// is_stateful: OpDef.is_stateful: it has state, or an effect besides its outputs.
// forwards, run_again: Forwards and RunAgain in op_registry.h.
"""
BY_HAND_OF_NEW_OP = "kNo, kNever"


def type_name(dtype):
    from tensorflow.python.framework import dtypes

    return dtypes.as_dtype(dtype).name


def word(arg, attrs):
    """The word for one output argument of an OpDef."""
    if arg.type_list_attr:
        return "[]" + arg.type_list_attr
    if arg.type_attr:
        text = arg.type_attr
        if attrs[text].HasField("default_value"):
            text += "=" + type_name(attrs[text].default_value.type)
    else:
        text = type_name(arg.type)
    if arg.is_ref:
        text = "&" + text
    if arg.number_attr:
        number = arg.number_attr
        if attrs[number].HasField("default_value"):
            number += "=%d" % attrs[number].default_value.i
        text = number + "*" + text
    return text


def all_ops():
    """The OpDefs of every op that is registered, and TensorFlow's version."""
    import tensorflow as tf
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return ops.op, tf.__version__


def updated(table):
    """The table's text as it should be."""
    by_hand = dict(re.findall(r'^SPILLWAY_OP\("([^"]+)", .*, (k\w+, k\w+)\)$', table, re.M))
    ops, version = all_ops()
    rows = []
    for op in sorted(ops, key=lambda op: op.name):
        attrs = {attr.name: attr for attr in op.attr}
        outputs = " ".join(word(arg, attrs) for arg in op.output_arg)
        names = " ".join(arg.name for arg in op.output_arg) if len(op.output_arg) > 1 else ""
        rows.append('SPILLWAY_OP("%s", "%s", "%s", %s, %s)\n'
                    % (op.name, outputs, names, "true" if op.is_stateful else "false",
                       by_hand.get(op.name, BY_HAND_OF_NEW_OP)))
    return HEADER % version + "".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", help="rewrite_core/graph/op_table.inc")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    with open(args.table, encoding="ascii") as f:
        before = f.read()
    after = updated(before)
    if args.check:
        if before != after:
            sys.exit("%s differs from TensorFlow's registry: run without --check" % args.table)
        print("%s: as TensorFlow has it" % args.table)
        return
    with open(args.table, "w", encoding="ascii") as f:
        f.write(after)
    print("wrote %s" % args.table)


if __name__ == "__main__":
    main()
