"""Values of keywords: text as the command line takes it, and refused values, with the error
messages."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import common

common.set_up()
# pylint: disable=wrong-import-position
import spillway
from spillway import _call, _duration, _values, options

# Each text's value: seconds, or None if invalid.
DURATIONS = {
    "30s": 30, "500ms": 0.5, "2m": 120, "1h30m": 5400, "1.5s": 1.5, ".5s": 0.5, "2.s": 2,
    "250us": 250e-6, "10ns": 1e-8, "+3s": 3, "1h2m3s": 3723, "inf": float("inf"), "+inf": float("inf"),
    "30": None, "s": None, "": None, "0": None, "0s": None, "-3s": None, "3 s": None, " 3s": None,
    "3S": None, "1d": None, "3sec": None, "1e3s": None, "1,5s": None, "3s4": None, "nan": None,
    "-inf": None, "1..5s": None, ".s": None, "infs": None}

# A feed's JSON, or None if invalid.
FEEDS = {
    "128,224": {"dims": [128, 224]}, "8": {"dims": [8]}, "": {"dims": []}, "0,3": {"dims": [0, 3]},
    "true": {"dims": [], "values": [1]}, "false": {"dims": [], "values": [0]},
    "2:64,64": {"dims": [2], "values": [64, 64]}, ":5": {"dims": [], "values": [5]},
    "2:true,false": {"dims": [2], "values": [1, 0]}, "2:-1,3": {"dims": [2], "values": [-1, 3]},
    "N": None, "-1": None, "8,": None, "a": None, "8,x": None, "1.5": None, "2:": None, "2:x": None,
    "True": None, "8;9": None, "2:1.5": None}

SIZES = {
    "32,64,128": [32, 64, 128], "32:64:8": [32, 40, 48, 56, 64], "3:5": [3, 4, 5], "7": [7],
    "8,16:32:8": [8, 16, 24, 32],
    "5:3": None, "a": None, "1:": None, ":5": None, "1:2:3:4": None, "1:5:0": None, "": None,
    "0:5": None, "1:20000": None}


def accepted(flag, text, *arguments):
    """Whether the program takes the text for the flag: else its sentence begins with the flag."""
    done = subprocess.run([str(common.BUILD / "bin" / "spillway"), *arguments, flag + "=" + text],
                          capture_output=True, timeout=common.PATIENCE_S, check=False)
    said = done.stderr.decode()
    return flag + ": " not in said, said


class GrammarTest(unittest.TestCase):

    def test_durations(self):
        for text, seconds in DURATIONS.items():
            with self.subTest(text=text):
                if seconds is None:
                    with self.assertRaisesRegex(spillway.InvalidOptionError, "^timeout: .*30s"):
                        _duration.seconds_of("timeout", text)
                else:
                    self.assertAlmostEqual(_duration.seconds_of("timeout", text), seconds)

    def test_durations_are_those_of_the_program(self):
        for text, seconds in DURATIONS.items():
            if text:  # The program takes an empty one for none.
                taken, said = accepted("--timeout", text, "capabilities", "--json")
                self.assertEqual(taken, seconds is not None, (text, said))

    def test_a_duration_is_a_time(self):
        graph = common.graph("mnist_deep", shapes=True)
        with self.assertRaises(spillway.DeadlineExceededError):
            spillway.explore(graph, timeout="1ms", sizes="1:500", no_budget=True)
        spillway.inspect(graph, timeout="1m")
        self.assertEqual(_call.Where("h:1", hedge_after="250ms").hedge_after, 0.25)

    def test_feeds(self):
        for text, feed in FEEDS.items():
            with self.subTest(text=text):
                if feed is None:
                    with self.assertRaisesRegex(spillway.InvalidOptionError, r"^feeds\['x'\]: "):
                        _values.feeds_of({"x": text})
                else:
                    self.assertEqual(_values.feeds_of({"x": text}), [{"name": "x", **feed}])
                    self.assertEqual(_values.feeds_of(["x=" + text]), [{"name": "x", **feed}])
                    self.assertEqual(_values.feeds_of("x=" + text), [{"name": "x", **feed}])

    def test_feeds_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "graph.pb")
            path.write_bytes(b"\x0a\x09\x0a\x01x\x12\x04NoOp")  # node { name: "x" op: "NoOp" }
            for text, feed in FEEDS.items():
                taken, said = accepted("--feed", "x=" + text, "inspect", str(path))
                self.assertEqual(taken, feed is not None, (text, said))

    def test_sizes_to_explore(self):
        for text, sizes in SIZES.items():
            with self.subTest(text=text):
                if sizes is None:
                    with self.assertRaisesRegex(spillway.InvalidOptionError, "^sizes: "):
                        _values.sizes_of("sizes", text)
                else:
                    self.assertEqual(_values.sizes_of("sizes", text), sizes)

    def test_sizes_to_explore_are_those_of_the_program(self):
        for text, sizes in SIZES.items():
            if text:
                taken, said = accepted("--sizes", text, "explore", "/nowhere.pb")
                self.assertEqual(taken, sizes is not None, (text, said))

    def test_a_size_that_varies(self):
        self.assertEqual(_values.feeds_of({"x": "N,224"}, with_size=True)[0]["dims"], [-1, 224])
        self.assertEqual(_values.feeds_of({"x": ["N", 224]}, with_size=True)[0]["dims"], [-1, 224])
        graph = common.graph("mnist_deep", shapes=True)
        placeholder = spillway.inspect(graph).placeholders[0].tensor.partition(":")[0]
        by_text = spillway.explore(graph, feeds={placeholder: "N,784"}, sizes="8,16",
                                   no_budget=True)
        self.assertEqual([size.size for size in by_text.sizes], [8, 16])
        self.assertEqual(by_text, spillway.explore(graph, feeds={placeholder: (-1, 784)},
                                                   sizes=[8, 16], no_budget=True))

    def test_lists(self):
        for value, items in (("a", ["a"]), ("a,b", ["a", "b"]), ({"b", "a"}, ["a", "b"]),
                             (("b", "a"), ["b", "a"]), (r"a\,b,c", ["a,b", "c"]),
                             (iter(["x"]), ["x"])):
            self.assertEqual(_values.list_of("targets", value), items)

    def test_numbers_of_many_kinds(self):
        class Index:
            def __index__(self):
                return 7

        for value, number in ((7, 7), ("7", 7), (7.0, 7), (Index(), 7), (" 7", 7), ("-1", -1)):
            made = json.loads(options.to_json(None, {"batch_size": value}))
            self.assertEqual(int(made["step"]["batch_size"]), number)
        made = json.loads(options.to_json("scope", {"fuse_swapins": "true", "swap_branches": 1}))
        self.assertEqual(made["scope"], {"fuse_swapins": True, "swap_branches": True})
        made = json.loads(options.to_json(None, {"max_slowdown": "1.2", "eff_conv": 1}))
        self.assertEqual((made["budget"]["max_slowdown"], made["step"]["hardware"]["eff_conv"]),
                         (1.2, 1))

    def test_a_machine_as_a_dict(self):
        made = json.loads(options.to_json(None, {"hardware": {
            "preset": "p100_pcie", "gpu_memory_bytes": "16GiB"}, "host_memory_bytes": "1GB"}))
        self.assertEqual(made["step"]["hardware"], {
            "preset": "p100_pcie", "gpu_memory_bytes": 16 << 30, "host_memory_bytes": 10**9})

    def test_a_machine_from_a_file(self):
        """As the program takes it; other keywords override its values."""
        graph = common.graph("mnist_deep", shapes=True)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "card.json")
            for text in ('{"preset": "t4", "gpu_memory_bytes": "5000000000", "mem_eff": 0.5}',
                         '{"preset": "t4", "gpuMemoryBytes": 5000000000, "memEff": 0.5}'):
                path.write_text(text)
                for given in (path, str(path)):
                    report = spillway.simulate(graph, hardware=given, batch_size=8,
                                               gpu_memory_bytes="4GB")
                    machine = report.hardware.hardware
                    self.assertEqual((machine.gpu_memory_bytes, machine.mem_eff, machine.preset),
                                     (4 * 10**9, 0.5, "t4"))
            pathlib.Path(folder, "graph.pb").write_bytes(graph)
            told = json.loads(common.command(
                "simulate", folder + "/graph.pb", "--json", "--hardware", str(path),
                "--batch-size", "8", "--gpu-memory-bytes", "4GB"))
            self.assertEqual(told["hardware"], report["hardware"])
            path.write_text('{"efficiencies": [{"kernels": "gather", "efficiency": 0.5}]}')
            machine = spillway.simulate(graph, hardware=path, batch_size=8,
                                        efficiencies={"pooling": 0.25}).hardware.hardware
            self.assertEqual({given.kernels: given.efficiency for given in machine.efficiencies},
                             {"gather": 0.5, "pooling": 0.25})
            told = json.loads(common.command(
                "simulate", folder + "/graph.pb", "--json", "--hardware", str(path),
                "--batch-size", "8", "--efficiency", "pooling=0.25"))
            self.assertEqual(told["hardware"]["hardware"]["efficiencies"],
                             [{"kernels": "pooling", "efficiency": 0.25},
                              {"kernels": "gather", "efficiency": 0.5}])
            path.write_text("[]")
            with self.assertRaisesRegex(OPTION, "^hardware: .* holds no machine; give the fields"):
                spillway.simulate(graph, hardware=path)
            path.write_text('{"mem_eft": 4}')
            with self.assertRaisesRegex(OPTION, "has 'mem_eft', which no machine has; did you mean "
                                                "'mem_eff'"):
                spillway.simulate(graph, hardware=path)
            path.write_text('{"mem_eff": "fast"}')
            with self.assertRaisesRegex(OPTION, "^mem_eff: 'fast' is not a number"):
                spillway.simulate(graph, hardware=path)
        for wrong in ("/nowhere/card.json", "card.json"):
            with self.assertRaisesRegex(OPTION, "^hardware: '%s' is no file with a machine" % wrong):
                spillway.simulate(graph, hardware=wrong)

    def test_a_size_with_a_unit_is_that_many_bytes(self):
        graph = common.graph("mnist_deep", shapes=True)
        report = spillway.simulate(graph, batch_size=8, gpu_memory_bytes="1MiB")
        self.assertEqual(report.hardware.hardware.gpu_memory_bytes, 1 << 20)
        self.assertEqual(report, spillway.simulate(graph, batch_size="8",
                                                   gpu_memory_bytes=1 << 20))

    def test_naming_an_authority_is_tls(self):
        for name in ("tls_ca", "tls_cert", "tls_key", "tls_server_name"):
            self.assertTrue(_call.Where("host:1", **{name: "x"}).tls)
        self.assertFalse(_call.Where("host:1", token="x").tls)
        self.assertEqual(_call.Where("host:1", tls_ca=pathlib.Path("/a/b")).tls_ca, "/a/b")
        self.assertEqual(_call.Where(["a:1", "b:2"]).server, "a:1,b:2")
        # And the call does use TLS: no server in clear would answer so.
        with common.server() as address:
            with self.assertRaisesRegex(spillway.SpillwayError, "nowhere.pem"):
                spillway.capabilities(server=address, tls_ca="/nowhere.pem", retries=0)


OPTION, TYPE = spillway.InvalidOptionError, TypeError

# Wrong input, and its error: (function, keywords, exception, regular expression). Each sentence
# names the keyword, shows the value, and says what to give.
MISTAKES = [
    # Values.
    ("rewrite", dict(gpu_memory_bytes="16G"), OPTION,
     r"^gpu_memory_bytes: '16G' is not a number of bytes, plain or with a unit: kB, MB, GB, TB \(of "
     r"1000\), KiB, MiB, GiB"),
    ("rewrite", dict(gpu_memory_bytes=[16]), OPTION,
     r"^gpu_memory_bytes: \[16\] is not a number of bytes, plain or as text with a unit"),
    ("rewrite", dict(min_tensor_bytes="1,5KiB"), OPTION, r"^min_tensor_bytes: '1,5KiB' is not a "),
    ("simulate", dict(host_memory_bytes="lots"), OPTION, r"^host_memory_bytes: 'lots' is not a "),
    ("rewrite", dict(gpu_memories={"/gpu:1": "12G"}), OPTION,
     r"^gpu_memories\['/gpu:1'\]: '12G' is not a number of bytes"),
    ("rewrite", dict(gpu_memories="12GiB"), OPTION,
     r"^gpu_memories: '12GiB' is not a dict like .*for all GPUs there is gpu_memory_bytes"),
    ("rewrite", dict(batch_size="many"), OPTION, r"^batch_size: 'many' is not a whole number"),
    ("rewrite", dict(batch_size=True), OPTION, r"^batch_size: True is not a whole number"),
    ("rewrite", dict(batch_size=12.5), OPTION, r"^batch_size: 12.5 is not a whole number"),
    ("rewrite", dict(batch_size=1 << 70), OPTION, r"^batch_size: \d+ is not a whole number from -"),
    ("rewrite", dict(batch_size=0), OPTION, r"batch_size.* 0.* 1 to 2147483647"),
    ("rewrite", dict(strategy="scope", lb=1 << 40), OPTION,
     r"^lb: 1099511627776 is not a whole number from -2147483648 to 2147483647"),
    ("rewrite", dict(strategy="scope", fuse_swapins="maybe"), OPTION,
     r"^fuse_swapins: 'maybe' is neither True nor False"),
    ("rewrite", dict(max_slowdown="fast"), OPTION, r"^max_slowdown: 'fast' is not a number"),
    ("rewrite", dict(planning_effort="hihg"), OPTION,
     r"^planning_effort: 'hihg' is none of low, medium, high; did you mean 'high'\?"),
    ("rewrite", dict(simulation=3.5), OPTION, r"^simulation: 3.5 is none of on, off"),
    ("rewrite", dict(cpu_device=0), OPTION, r"^cpu_device: 0 is not a text"),
    ("rewrite", dict(strategy="scope", excl_scopes=5), OPTION,
     r"^excl_scopes: 5 is neither a name nor a list of names"),
    ("rewrite", dict(strategy="scope", excl_scopes=["a", 5]), OPTION,
     r"^excl_scopes: 5 is in a list of names, and is none"),
    ("rewrite", dict(strategy="level", serialization=[1.5]), OPTION,
     r"^serialization: \[1.5\] is not a list of levels, .*\[12, \"3:5\"\]"),
    ("rewrite", dict(profile="run.pb"), OPTION,
     r"^profile: 'run.pb' is neither a RunMetadata or StepStats nor its bytes"),
    ("rewrite", dict(hardware="v100_nvlink3"), OPTION, r"v100_nvlink3.*did you mean"),
    ("rewrite", dict(hardware={"gpu_memory": 5}), TYPE,
     r"^hardware has no 'gpu_memory'; did you mean 'gpu_memories'.*; it has preset, allocator"),
    ("rewrite", dict(efficiencies="transpose=0.6"), OPTION,
     r"^efficiencies: 'transpose=0.6' is not a dict like"),
    ("rewrite", dict(efficiencies={"gather": "x"}), OPTION,
     r"^efficiencies\['gather'\]: 'x' is not a number"),
    ("rewrite", dict(loop_counts=[3]), OPTION, r"^loop_counts: \[3\] is not a dict like"),
    ("rewrite", dict(loop_counts={"w": "x"}), OPTION, r"^loop_counts\['w'\]: 'x' is not a whole"),
    # Feeds.
    ("rewrite", dict(feeds={"images": "200,x"}), OPTION,
     r"^feeds\['images'\]: '200,x' is not DIM,DIM,... with whole numbers .*\"128,224,224,3\""),
    ("rewrite", dict(feeds={"images": (None, 224)}), OPTION,
     r"^feeds\['images'\]: \(None, 224\) has a dimension that is not known; give its size"),
    ("rewrite", dict(feeds={"images": [[1, 2]]}), OPTION,
     r"^feeds\['images'\]: \[1, 2\] is not a dimension of a shape"),
    ("rewrite", dict(feeds={"images": object}), OPTION,
     r"^feeds\['images'\]: <class 'object'> is neither a shape"),
    ("rewrite", dict(feeds={5: (1,)}), OPTION, r"^feeds: 5 is neither the name of a fed tensor"),
    ("rewrite", dict(feeds=["images"]), OPTION, r"^feeds: 'images' is not NAME=DIM,DIM,"),
    ("rewrite", dict(feeds=7), OPTION, r"^feeds: 7 is not a dict like \{\"images\": \(128, "),
    ("inspect", dict(feeds={"nowhere": (1,)}), OPTION, r"^feed 'nowhere' names no node"),
    # Calls.
    ("rewrite", dict(timeout="30"), OPTION,
     r"^timeout: '30' is not a time above zero with a unit, e.g. \"30s\", \"500ms\", \"2m\", nor a "),
    ("simulate", dict(timeout=[3]), OPTION, r"^timeout: \[3\] is not a number of seconds"),
    ("rewrite", dict(timeout=float("nan")), OPTION, r"^timeout: nan is not a number of seconds"),
    ("rewrite", dict(server="h:1", hedge_after="soon"), OPTION, r"^hedge_after: 'soon' is not a "),
    ("rewrite", dict(server="h:1", retries="few"), OPTION, r"^retries: 'few' is not a whole"),
    ("rewrite", dict(server=7070), OPTION, r"^server: 7070 is not a text"),
    ("rewrite", dict(server="h:1", token=5), OPTION, r"^token: 5 is not a text"),
    ("rewrite", dict(server=""), TYPE, r"^server is empty; leave it out"),
    ("rewrite", dict(tls_ca="ca.pem"), TYPE, r"^tls_ca needs server="),
    ("rewrite", dict(retries=0, request_id="x"), TYPE, r"^retries, request_id need server="),
    ("rewrite", dict(progress=5), TYPE, r"^progress: 5 cannot be called"),
    ("explore", dict(on_size="x"), TYPE, r"^on_size: 'x' cannot be called"),
    ("inspect", dict(on_tensors=1), TYPE, r"^on_tensors: 1 cannot be called"),
    ("explore", dict(sizes="8-16"), OPTION, r"^sizes: '8-16' is not a list of sizes, \"32,64\""),
    ("explore", dict(sizes=[8, "x"]), OPTION, r"^sizes: 'x' is not a whole number"),
    ("explore", dict(multiple_of="two"), OPTION, r"^multiple_of: 'two' is not a whole number"),
    ("explore", dict(swapping="perhaps"), OPTION, r"^swapping: 'perhaps' is neither True nor"),
    ("inspect", dict(largest_tensor_count="all"), OPTION, r"^largest_tensor_count: 'all' is not"),
    # The library's sentences, in the words of keywords.
    ("rewrite", dict(gpu_memory_bytes=0), OPTION, r"^gpu_memory_bytes is 0; give a number of bytes"),
    ("simulate", dict(allocator_reserve=2), OPTION, r"^allocator_reserve is 2; give a number from 0"),
    ("rewrite", dict(hardware="v100"), OPTION,
     r"^hardware is 'v100', which does not exist; did you mean 'v100_pcie'"),
    ("rewrite", dict(inline_calls="always", patch=True, batch_size=8), OPTION,
     r"^inline_calls is always, and a patch is asked for"),
    ("rewrite", dict(objective="free_swaps_only", max_slowdown=1.5), OPTION,
     r"the objective free_swaps_only allows no slowdown; take smallest_peak with max_slowdown"),
    ("rewrite", dict(targets="hardware.preset"), OPTION, r"^target 'hardware.preset' names no node"),
    ("rewrite", dict(server="h:1", retries=-1), OPTION, r"^retries: -1 is below 0; 0 is to try once"),
    # Names.
    ("rewrite", dict(batch_sise=3), TYPE, r"^there is no option 'batch_sise'; did you mean "
                                          r"'batch_size'\?; those of the strategy budget are "),
    ("rewrite", dict(strategy="levels"), TYPE, r"^there is no strategy 'levels'; did you mean "
                                               r"'level'\?; there are budget, level, scope"),
    ("rewrite", dict(strategy="level", lb=3), TYPE, r"^lb is of the strategy scope, and level was "),
    ("simulate", dict(memmory=True), TYPE, r"^simulate has no option memmory; did you mean 'memory'"),
    ("explore", dict(target="x"), TYPE, r"^explore has no option target; did you mean 'targets'\?"),
    ("diff", dict(batch_size=3), TYPE, r"^diff has no option batch_size; it has "),
    ("capabilities", dict(tls_cA="x"), TYPE, r"^capabilities has no option tls_cA; did you mean "
                                             r"'tls_ca'"),
]


class MistakesTest(unittest.TestCase):

    def test_each_sentence(self):
        self.assertGreaterEqual(len(MISTAKES), 30)
        graph = common.graph("mnist_deep", shapes=True)
        graphs = {"diff": (graph, graph), "capabilities": ()}
        for name, keywords, kind, sentence in MISTAKES:
            with self.subTest(call=name, **{key: str(value) for key, value in keywords.items()}):
                with self.assertRaisesRegex(kind, sentence) as caught:
                    getattr(spillway, name)(*graphs.get(name, (graph,)), **keywords)
                said = str(caught.exception)
                self.assertNotIn("\n", said)
                self.assertNotRegex(said, r"JSON|int\(\)|ctypes|argument \d")
                if kind is OPTION:
                    self.assertIsInstance(caught.exception, ValueError)
                    self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")

    def test_a_long_value_is_cut(self):
        with self.assertRaises(OPTION) as caught:
            spillway.rewrite(b"x", batch_size="9x" * 10000)
        self.assertLess(len(str(caught.exception)), 300)

    def test_a_wrong_value_fails_open(self):
        """As one that the library refuses."""
        graph = common.graph("cond_v1", shapes=True)
        for keywords in (dict(gpu_memory_bytes="16G"), dict(strategy="scope", lb=0)):
            with self.assertWarnsRegex(spillway.SpillwayWarning, "trains as it is"):
                result = spillway.rewrite(graph, fail_open=True, **keywords)
            self.assertEqual(result.graph_def, graph)


if __name__ == "__main__":
    unittest.main()
