"""Writes rewrite_core/inline/stateful_ops.inc from TensorFlow's own op registry.

    python tests/tensorflow/make_stateful_table.py OUT [--check]

One row per op that has state, or an effect besides its outputs. --check compares OUT with what
would be written.
"""
import os

import op_registry

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

HEADER = """\
// Made by tests/tensorflow/make_stateful_table.py from the op registry of TensorFlow %s; do not
// edit. SPILLWAY_STATEFUL(op): OpDef.is_stateful.
"""


def table():
    ops, version = op_registry.all_ops()
    return HEADER % version + "".join('SPILLWAY_STATEFUL("%s")\n' % op.name
                                      for op in sorted(ops, key=lambda op: op.name)
                                      if op.is_stateful)


if __name__ == "__main__":
    op_registry.write_or_check(__doc__, "rewrite_core/inline/stateful_ops.inc", table)
