"""The feeds of a training step, made again from a description.

A feed is described by a dict: `name` (a tensor), `dtype`, `shape`, `seed`, `kind` and the numbers
of that kind. Step s (0, 1, ...) draws from numpy.random.RandomState(seed + s), whose streams numpy
guarantees not to change.
"""
import numpy as np


def _normal(spec, shape, random):
    return np.asarray(random.normal(spec["loc"], spec["scale"], shape))


def _randint(spec, shape, random):
    """`high` is exclusive."""
    return np.asarray(random.randint(spec["low"], spec["high"], shape))


def _constant(spec, shape, random):
    del random
    return np.full(shape, spec["value"])


def _onehot(spec, shape, random):
    """One random class per row; the last dimension counts the classes."""
    del spec
    return np.eye(shape[-1])[random.randint(0, shape[-1], shape[:-1])]


KINDS = {"normal": _normal, "randint": _randint, "constant": _constant, "onehot": _onehot}


def feed(spec, step):
    """The array for one entry of feed_spec at one step."""
    if spec["kind"] not in KINDS:
        raise ValueError("feed %s: unknown kind %r" % (spec["name"], spec["kind"]))
    random = np.random.RandomState(spec["seed"] + step)
    return KINDS[spec["kind"]](spec, tuple(spec["shape"]), random).astype(np.dtype(spec["dtype"]))


def feed_dict(specs, step):
    """{tensor name: array} for all entries of feed_spec."""
    return {spec["name"]: feed(spec, step) for spec in specs}
