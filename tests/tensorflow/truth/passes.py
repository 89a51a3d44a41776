"""Spillway's model of TensorFlow's passes, by the program `list_passes`, for the tests that compare
it with the passes. Import it when TensorFlow's environment is set."""
import collections
import subprocess

from tensorflow.python.framework import op_def_registry

from truth import names


def missing_op(graph_def):
    """An op of the graph that this TensorFlow lacks, or None."""
    missing = {node.op for node in graph_def.node if not op_def_registry.get(node.op)}
    missing -= {function.signature.name for function in graph_def.library.function}
    return min(missing, default=None)


def leading_to(graph_def, targets):
    """The names of the targets and of all that they need."""
    by_name = {node.name: node for node in graph_def.node}
    found, stack = set(targets), list(targets)
    while stack:
        for edge in by_name[stack.pop()].input:
            if names.node(edge) not in found:
                found.add(names.node(edge))
                stack.append(names.node(edge))
    return found


def listed(program, path, capability, targets=()):
    """What `list_passes` prints of a file, by the first word of each line."""
    run = subprocess.run([program, path, capability, *targets], check=True, capture_output=True,
                         text=True)
    found = collections.defaultdict(list)
    for line in run.stdout.splitlines():
        kind, text = line.split(" ", 1)
        found[kind].append(text)
    return found
