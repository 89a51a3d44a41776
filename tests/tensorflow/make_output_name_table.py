"""Writes rewrite_core/analysis/shapes/output_names.inc from TensorFlow's own op registry.

    python tests/tensorflow/make_output_name_table.py OUT [--check]

One row per op of several output arguments: its name and theirs, by which the nodes of a function's
body read them. --check compares OUT with what would be written.
"""
import os

import op_registry

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

HEADER = """\
// Made by tests/tensorflow/make_output_name_table.py from the op registry of TensorFlow %s; do not
// edit. SPILLWAY_OUTPUTS(op, names): the output arguments of an op that has several.
"""


def table():
    ops, version = op_registry.all_ops()
    rows = []
    for op in sorted(ops, key=lambda op: op.name):
        if len(op.output_arg) > 1:
            rows.append('SPILLWAY_OUTPUTS("%s", "%s")\n'
                        % (op.name, " ".join(arg.name for arg in op.output_arg)))
    return HEADER % version + "".join(rows)


if __name__ == "__main__":
    op_registry.write_or_check(__doc__, "rewrite_core/analysis/shapes/output_names.inc", table)
