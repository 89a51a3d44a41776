"""Writes rewrite_core/graph/op_table.inc from TensorFlow's own op registry.

    python tests/tensorflow/make_op_table.py OUT [--check]

One row per op: what Spillway knows of it from its OpDef. To let it know more, add a column here and
to the macro that reads the rows (rewrite_core/graph/op_registry.cc). With --check, OUT is compared
with what would be written, and the exit code says whether they agree.
"""
import os

import op_registry

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

HEADER = """\
// Made by tests/tensorflow/make_op_table.py from the op registry of TensorFlow %s; do not edit.
// SPILLWAY_OP(name, outputs, output_names, is_stateful)
// outputs: one word per output argument, separated by spaces. A word is
//   float, int32, ...   a fixed type
//   T                   the type in attribute T
//   T=float             the same, float where the attribute was stripped as the default
//   N*T                 N tensors of that type, N an int attribute (N=2*T: its default is 2)
//   []Tout              one tensor per type in the list attribute Tout
//   &...                a reference to a variable
// output_names: their names, by which nodes of a function's body read them; empty for one output.
// is_stateful: OpDef.is_stateful: it has state, or an effect besides its outputs.
"""


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


def table():
    ops, version = op_registry.all_ops()
    rows = []
    for op in sorted(ops, key=lambda op: op.name):
        attrs = {attr.name: attr for attr in op.attr}
        outputs = " ".join(word(arg, attrs) for arg in op.output_arg)
        names = " ".join(arg.name for arg in op.output_arg) if len(op.output_arg) > 1 else ""
        rows.append('SPILLWAY_OP("%s", "%s", "%s", %s)\n'
                    % (op.name, outputs, names, "true" if op.is_stateful else "false"))
    return HEADER % version + "".join(rows)


if __name__ == "__main__":
    op_registry.write_or_check(__doc__, "rewrite_core/graph/op_table.inc", table)
