"""Writes client_lib/format/attribute_names.inc from TensorFlow's own op registry.

    python tests/tensorflow/make_attribute_table.py OUT [--check]

One row per name that an attribute of any op has, in order. With --check, OUT is compared with what
would be written and the exit code says whether they agree.
"""
import os

import op_registry

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

HEADER = """\
// Made by tests/tensorflow/make_attribute_table.py from the op registry of TensorFlow %s; do not
// edit. The names of all attributes of its ops, in order.
"""


def table():
    ops, version = op_registry.all_ops()
    names = sorted({attr.name for op in ops for attr in op.attr})
    return HEADER % version + "".join('SPILLWAY_ATTRIBUTE("%s")\n' % name for name in names)


if __name__ == "__main__":
    op_registry.write_or_check(__doc__, "client_lib/format/attribute_names.inc", table)
