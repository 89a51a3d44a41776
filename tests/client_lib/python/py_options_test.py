"""Keywords against options.proto and hardware.proto."""

import json
import re
import unittest
from unittest import mock

import common

common.set_up()
from spillway import options  # pylint: disable=wrong-import-position


def fields(file, message):
    """{field: type} of a message, read from the .proto."""
    text = (common.ROOT / "proto" / "spillway" / "v1" / file).read_text()
    text = re.sub(r"//[^\n]*", "", text)
    body = re.search(r"message %s \{(.*?)\n\}" % message, text, re.DOTALL).group(1)
    body = re.sub(r"enum \w+ \{.*?\}", "", body, flags=re.DOTALL)
    return {name: kind for kind, name in re.findall(
        r"(?:optional |repeated )?(\w+) (\w+) = \d+;", body)}


class OptionsTest(unittest.TestCase):

    def test_every_field_has_its_keyword_and_every_keyword_its_field(self):
        proto = fields("options.proto", "RewriteOptions")
        strategies = {"scope": "ScopeStrategy", "level": "LevelStrategy",
                      "budget": "BudgetStrategy"}
        self.assertEqual(set(proto) - set(strategies) - set(options.OTHERS) - {"outputs", "step"},
                         set(options.COMMON))
        self.assertEqual(set(fields("step.proto", "Step")), set(options.STEP))
        for strategy, message in strategies.items():
            self.assertEqual(set(fields("options.proto", message)),
                             set(options.STRATEGIES[strategy]))
        self.assertEqual(set(options.STRATEGIES), set(strategies))
        self.assertEqual(set(options.OTHERS), {"strip", "apply"})
        self.assertEqual(set(fields("options.proto", "ApplyStrategy")), set(options.OTHERS["apply"]))
        machine = set(fields("hardware.proto", "Hardware"))
        not_given = {"preset", "gpu_memory_source"}
        self.assertEqual(machine - not_given, set(options.HARDWARE))

    def test_enums_are_those_of_the_proto(self):
        plain = {"int32", "int64", "bool", "string", "double", "bytes", "Step", "Output",
                 "ScopeStrategy", "LevelStrategy", "BudgetStrategy", "StripStrategy", "ApplyStrategy",
                 "Feed", "Hardware", "LoopCount"}
        found = {name for file, message in (("options", "RewriteOptions"),
                                            ("options", "ScopeStrategy"),
                                            ("options", "LevelStrategy"),
                                            ("options", "BudgetStrategy"), ("step", "Step"))
                 for name, kind in fields(file + ".proto", message).items() if kind not in plain}
        self.assertEqual(found, set(options.ENUMS))

    def test_a_keyword_that_does_not_exist_is_named(self):
        with self.assertRaisesRegex(TypeError, "no option 'lbb'"):
            options.to_json("scope", {"lbb": 1})

    def test_a_keyword_of_another_strategy_says_whose_it_is(self):
        with self.assertRaisesRegex(TypeError, "lb is of the strategy scope.*strategy='scope'"):
            options.to_json(None, {"lb": 1})

    def test_sizes_are_those_of_every_program(self):
        count = 0
        for line in (common.ROOT / "tests" / "testing" / "sizes.txt").read_text().splitlines():
            if line.startswith(("#", "-")) or "|" not in line:  # Below 0 the library judges.
                continue
            count += 1
            text, size = line.split("|")
            if size == "-":
                with self.assertRaisesRegex(ValueError, "^min_tensor_bytes: .* is not a number of"):
                    options.to_json(None, {"min_tensor_bytes": text})
                continue
            made = json.loads(options.to_json(None, {"min_tensor_bytes": text}))
            self.assertEqual(int(made["min_tensor_bytes"]), int(size), text)
        self.assertGreaterEqual(count, 30)
        step = json.loads(options.to_json(None, {
            "gpu_memory_bytes": "16GiB", "gpu_memories": {"/gpu:1": "12GB"}}))["step"]
        self.assertEqual(int(step["hardware"]["gpu_memory_bytes"]), 16 << 30)
        self.assertEqual(int(step["hardware"]["gpu_memories"][0]["gpu_memory_bytes"]), 12 * 10**9)

    def test_an_unknown_strategy(self):
        with self.assertRaisesRegex(TypeError, "no strategy 'best'; there are budget, level, scope"):
            options.to_json("best", {})

    def test_nothing_given_is_an_empty_message(self):
        self.assertEqual(json.loads(options.to_json(None, {"batch_size": None})), {})

    def test_values(self):
        made = json.loads(options.to_json("scope", {
            "optimizer_scopes": {"b", "a"}, "starting_op_names": "x",
            "ctrld_strategy": "direct_order",
            "feeds": {"images": (128, 224)}, "hardware": "v100_nvlink2", "gpu_memory_bytes": 5,
            "already_rewritten": "replan", "simulation": False, "profile": b"\x00\x01"}))
        self.assertEqual(made, {
            "scope": {"optimizer_scopes": ["a", "b"], "starting_op_names": ["x"],
                      "ctrld_strategy": "CTRLD_STRATEGY_DIRECT_ORDER"},
            "step": {"feeds": [{"name": "images", "dims": [128, 224]}],
                     "hardware": {"preset": "v100_nvlink2", "gpu_memory_bytes": 5},
                     "profile": "AAE="},
            "already_rewritten": "ALREADY_REWRITTEN_REPLAN", "simulation": "SIMULATION_OFF"})

    def test_what_a_plan_is_to_be_like(self):
        self.assertEqual(
            json.loads(options.to_json(None, {"objective": "smallest_peak", "max_slowdown": 1.2})),
            {"budget": {"objective": "PLANNING_OBJECTIVE_SMALLEST_PEAK", "max_slowdown": 1.2}})

    def test_what_is_fed(self):
        """Shapes, and small values of integers and bools: a stand-in for an array of numpy."""
        class Array:
            def __init__(self, kind, shape, items):
                self.dtype, self.shape, self.size = mock.Mock(kind=kind), shape, len(items)
                self.ravel = lambda: items

        made = json.loads(options.to_json(None, {"feeds": {
            "training": True, "augments": False, "rate": Array("f", (), [0.5]),
            "sizes": Array("i", (1, 2), [3, 4]), "labels": Array("i", (300,), [1] * 300)}}))
        self.assertEqual(made["step"]["feeds"], [
            {"name": "training", "dims": [], "values": [1]},
            {"name": "augments", "dims": [], "values": [0]}, {"name": "rate", "dims": []},
            {"name": "sizes", "dims": [1, 2], "values": [3, 4]}, {"name": "labels", "dims": [300]}])

    def test_strategies_are_those_of_the_reports(self):
        text = (common.ROOT / "proto" / "spillway" / "v1" / "report.proto").read_text()
        body = re.search(r"enum Strategy \{(.*?)\n\}", text, re.DOTALL).group(1)
        names = {name.lower() for name in re.findall(r"STRATEGY_(\w+) = [1-9]", body)}
        self.assertEqual(names, {*options.STRATEGIES, *options.OTHERS})


if __name__ == "__main__":
    unittest.main()
