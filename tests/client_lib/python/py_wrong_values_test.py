"""Each keyword of each call with each of some forty values that are wrong for most: refused values
raise an InvalidOptionError or a TypeError that names the keyword, at once. The table is generated
from the signatures."""

import collections
import decimal
import fractions
import inspect
import itertools
import os
import pathlib
import tempfile
import time
import unittest
import warnings

import common

common.set_up()
os.environ["GRPC_VERBOSITY"] = "NONE"  # It speaks of names of servers that are none.
# pylint: disable=wrong-import-position
import spillway
from spillway import _call

HUGE = 10 ** 5000


class NoText:
    """Has a repr that fails."""

    def __repr__(self):
        raise ZeroDivisionError


class Endless(collections.abc.Mapping):
    """A dict whose items do not end."""

    def __getitem__(self, key):
        return 1

    def __len__(self):
        return 1

    def __iter__(self):
        return map(str, itertools.count())

    def items(self):
        return zip(iter(self), itertools.repeat(1))


class Array:
    """As an array of several: neither true nor false."""
    dtype, shape, size = "object", (2,), 2

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise ValueError("The truth value of an array with more than one element is ambiguous")

    __hash__ = object.__hash__


class PathOfBytes:
    """A path that is no text."""

    def __fspath__(self):
        return b"x"


# Created for each call: some are used up.
VALUES = {
    "0": lambda: 0, "-1": lambda: -1, "2**31": lambda: 1 << 31, "2**63": lambda: 1 << 63,
    "10**5000": lambda: HUGE, "-10**5000": lambda: -HUGE,
    "0.5": lambda: 0.5, "1e308": lambda: 1e308, "nan": lambda: float("nan"),
    "inf": lambda: float("inf"), "-inf": lambda: float("-inf"), "complex": lambda: 1j,
    "fraction": lambda: fractions.Fraction(HUGE), "decimal": lambda: decimal.Decimal("1e999999"),
    "True": lambda: True,
    "empty": lambda: "", "space": lambda: " ", "word": lambda: "no such thing",
    "newline": lambda: "a\nb", "zero": lambda: "a\0b", "digits": lambda: "9" * 5000,
    "-digits": lambda: "-" + "9" * 5000, "digits.0": lambda: "9" * 5000 + ".0",
    "digits:": lambda: "1:" + "9" * 5000, "digits GB": lambda: "9" * 400 + "GB",
    "surrogate": lambda: "\ud800", "surrogates": lambda: ["\ud800"],
    "long": lambda: "x" * 100_000, "path": lambda: "/dev/zero",
    "bytes": lambda: b"x", "bytearray": lambda: bytearray(b"\xff"),
    "memoryview": lambda: memoryview(b"abc")[::2],
    "[]": lambda: [], "[None]": lambda: [None], "[[1]]": lambda: [[1]], "[huge]": lambda: [HUGE],
    "{}": dict, "dict": lambda: {"a": 1}, "{huge}": lambda: {HUGE: HUGE},
    "{surrogate}": lambda: {"\ud800": "\ud800"}, "{name: huge}": lambda: {"a": HUGE},
    "{name: name}": lambda: {"a": "\ud800"}, "set": lambda: {1, 2},
    "count": itertools.count, "endless": lambda: itertools.repeat("x"),
    "endless dict": Endless, "endless in a dict": lambda: {"a": itertools.count()},
    "object": object, "no text": NoText, "array": Array, "type": lambda: dict,
    "path type": lambda: pathlib.Path, "path of bytes": PathOfBytes,
    "function": lambda: lambda: None, "module": lambda: os,
}
# Calls that answer any wrong value at once.
_SOON_S = 5.0
# Keywords that are not options: a value of theirs may be right and the call still fail, at an
# address without a listener.
_PLACES = frozenset(_call.Where.__dataclass_fields__) - {"server"}
# Values of these may be texts that name nothing.
_OTHER_WORDS = {"feeds": "feed", "targets": "target", "loop_counts": "loop",
                "devices": "device", "gpu_memories": "gpu_memor",
                "tls_ca": "the certificate authorities", "tls_cert": "a client certificate",
                "tls_key": "a client certificate"}
# These options do not check a callback's parameters.
_FUNCTIONS = ("progress", "on_tensors", "on_size")


def keywords_of(function):
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not inspect.Parameter.empty]


class WrongValuesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        # A step of one node: right values run at once, too.
        cls.graph = b"\x0a\x09\x0a\x01x\x12\x04NoOp"
        cls.plan = spillway.Plan(b"")

    def call(self, name, keywords):
        """A call with these keywords; in a folder of its own, for files that it may write."""
        first = {"diff": (self.graph, self.graph), "capabilities": (), "Client": (),
                 "apply": (self.graph, self.plan), "check": (b"", b"")}.get(name, (self.graph,))
        with tempfile.TemporaryDirectory() as folder:
            here = os.getcwd()
            os.chdir(folder)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # Of fail_open.
                    getattr(spillway, name)(*first, **keywords)
            finally:
                os.chdir(here)

    def judge(self, name, keyword, what, keywords):
        begun = time.monotonic()
        try:
            self.call(name, keywords)
        except (spillway.InvalidOptionError, TypeError) as error:
            said = str(error)
            if said in self.plainly:
                return
            named = getattr(error, "metadata", {}).get("option", said)
            word = _OTHER_WORDS.get(keyword, keyword)
            if word not in said and keyword not in named:
                self.wrong.append((name, keyword, what, "does not name it: " + said[:200]))
        except spillway.UnavailableError:
            if keyword not in _PLACES | {"server", "timeout"}:
                self.wrong.append((name, keyword, what, "was sent"))
        except (spillway.DeadlineExceededError, spillway.InvalidGraphError):
            pass  # Of a timeout of nothing; of a graph that has no training step.
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append((name, keyword, what, "%s: %s" % (type(error).__name__,
                                                                str(error)[:200])))
        if time.monotonic() - begun > _SOON_S:
            self.wrong.append((name, keyword, what, "%.1f s" % (time.monotonic() - begun)))

    def judge_all(self, name, keywords, given):
        self.wrong, self.plainly = [], set()
        for plain, its in ((name, given), ("explore", {})):  # A plot may explore.
            try:
                self.call(plain, its)
            except (spillway.SpillwayError, TypeError) as error:
                self.plainly.add(str(error))  # Its error about this graph, for any keywords.
        for keyword in keywords:
            for what, make in VALUES.items():
                value = make()
                if keyword in _FUNCTIONS and callable(value):
                    continue
                more = dict(given)
                if keyword in _PLACES:
                    more["server"] = "unix:/nowhere"
                    if name != "Client":
                        more["timeout"] = 0.005
                self.judge(name, keyword, what, {**more, keyword: value})
        self.assertEqual(self.wrong, [], "\n".join(map(str, self.wrong)))

    def test_options_of_each_strategy(self):
        shared = set(keywords_of(spillway.rewrite)) - set().union(
            *spillway.options.STRATEGIES.values(), ("plan",))
        self.judge_all("rewrite", sorted(shared), {})
        for strategy, names in spillway.options.STRATEGIES.items():
            self.judge_all("rewrite", sorted(names), {"strategy": strategy})
        self.judge_all("rewrite", ["plan"], {"strategy": "apply"})

    def test_with_fail_open_no_value_raises(self):
        keywords = [name for name in keywords_of(spillway.rewrite) if name != "fail_open"]
        self.assertIn("recompute", keywords)
        raised, warned = [], 0
        for keyword in keywords:
            for what, make in {**VALUES, "newer": lambda: "of_a_newer_version"}.items():
                value = make()
                if keyword in _FUNCTIONS and callable(value):
                    continue
                given = {"server": "unix:/nowhere", "timeout": 0.005} if keyword in _PLACES else {}
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        result = spillway.rewrite(self.graph, fail_open=True,
                                                  **{**given, keyword: value})
                        self.assertEqual(result.graph_def, self.graph)
                        if result.error is not None:
                            self.assertEqual([warning.category for warning in caught],
                                             [spillway.SpillwayWarning])
                            warned += 1
                    except Exception as error:  # pylint: disable=broad-except
                        raised.append((keyword, what, repr(error)[:200]))
        self.assertEqual(raised, [], "\n".join(map(str, raised)))
        self.assertGreater(warned, len(keywords) * len(VALUES) // 2)

    def test_calls(self):
        for name in ("apply", "strip", "inspect", "simulate", "explore", "diff", "capabilities",
                     "plot", "check", "Client"):
            with self.subTest(call=name):
                keywords = keywords_of(getattr(spillway, name))
                self.assertTrue(keywords)
                self.judge_all(name, keywords, {})


if __name__ == "__main__":
    unittest.main()
