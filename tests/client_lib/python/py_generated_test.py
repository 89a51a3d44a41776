"""The code generated from the .proto files, and its view in editors and `help`."""

import ast
import inspect
import pathlib
import re
import shutil
import subprocess
import sys
import typing
import unittest

import common

common.set_up()
# pylint: disable=wrong-import-position
import spillway
from spillway import _doors, _questions, horovod, messages, options

# Where each door is, and the names that are not keywords.
DOORS = {
    "_rewrite.py": {"rewrite": spillway.rewrite, "apply": spillway.apply,
                    "strip": spillway.strip},
    "_questions.py": {"inspect": spillway.inspect, "simulate": spillway.simulate,
                      "explore": spillway.explore, "diff": spillway.diff,
                      "capabilities": spillway.capabilities},
    "_client.py": {name: getattr(spillway.Client, name) for name in (
        "rewrite", "apply", "strip", "inspect", "simulate", "explore", "plot", "diff",
        "capabilities")},
    "_plot.py": {"plot": spillway.plot},
    "horovod.py": {"rewrite": horovod.rewrite, "rewrite_graph": horovod.rewrite_graph},
}


def doors_of(file):
    """{function: (its own parameters, the TypedDict behind **keywords)} of a source file, as a type
    checker reads it."""
    found = {}
    for node in ast.walk(ast.parse((common.PACKAGE / "spillway" / file).read_text())):
        if not isinstance(node, ast.FunctionDef) or node.args.kwarg is None:
            continue
        match = re.fullmatch(r"Unpack\[_doors\.(\w+)\]", ast.unparse(node.args.kwarg.annotation))
        if match:
            own = [argument.arg for argument in
                   node.args.posonlyargs + node.args.args + node.args.kwonlyargs]
            found[node.name] = (own, getattr(_doors, match.group(1)))
    return found


class GeneratedTest(unittest.TestCase):

    @unittest.skipUnless(shutil.which("protoc"), "there is no protoc here")
    def test_it_follows_the_proto_files(self):
        """In a copy of the tree, with one more field; what would not change is left alone."""
        import tempfile  # pylint: disable=import-outside-toplevel
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            shutil.copytree(common.PACKAGE, tree / "client_lib" / "python",
                            ignore=shutil.ignore_patterns("build", "lib", "__pycache__"))
            shutil.copytree(common.ROOT / "proto", tree / "proto")
            shutil.copy(common.ROOT / "CMakeLists.txt", tree)
            step = tree / "proto" / "spillway" / "v1" / "step.proto"
            step.write_text(step.read_text().replace(
                "message Step {", "message Step {\n  // How warm it is.\n  double warmth = 99;", 1))
            package = tree / "client_lib" / "python" / "spillway"
            before = {file: (package / file).stat().st_mtime_ns
                      for file in ("messages.py", "_keywords.py", "_version.py")}
            for where in (("package", package), ("flags", tree / "help.inc")):
                subprocess.run([sys.executable, tree / "client_lib" / "python" / "generate.py", *where],
                               check=True, timeout=common.PATIENCE_S)
            self.assertEqual([file for file, time in before.items()
                              if (package / file).stat().st_mtime_ns != time], ["_keywords.py"])
            self.assertIn('    warmth: Optional[float]\n    """How warm it is."""',
                          (package / "_keywords.py").read_text())
            self.assertIn('SPILLWAY_OPTION("warmth", "--warmth", R"(How warm it is.)", "")',
                          (tree / "help.inc").read_text())

    def test_a_copy_that_is_not_built_says_so(self):
        import tempfile  # pylint: disable=import-outside-toplevel
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(common.PACKAGE / "spillway", pathlib.Path(folder, "spillway"),
                            ignore=shutil.ignore_patterns("messages.py", "_keywords.py",
                                                          "_version.py", "__pycache__"))
            done = subprocess.run([sys.executable, "-c", "import spillway"], cwd=folder, text=True,
                                  capture_output=True, timeout=common.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not built", done.stderr.splitlines()[-1])
        self.assertIn("cmake --preset release", done.stderr.splitlines()[-1])

    def test_answers_have_the_fields_of_the_proto(self):
        """Read by another reader than the generator's: the .proto as text."""
        for file, message, kind in (
                ("simulate.proto", "SimulateReport", messages.SimulateReport),
                ("forecast.proto", "DeviceForecast", messages.DeviceForecast),
                ("inspect.proto", "GraphSummary", messages.GraphSummary),
                ("diff.proto", "GraphDiff", messages.GraphDiff),
                ("report.proto", "BudgetDevice", messages.BudgetDevice)):
            text = (common.ROOT / "proto" / "spillway" / "v1" / file).read_text()
            body = re.search(r"message %s \{(.*?)\n\}" % message, text, re.DOTALL).group(1)
            wanted = re.findall(r"^\s*(?:optional |repeated )?\w+ (\w+) = \d+;", body, re.MULTILINE)
            self.assertEqual(list(kind.__dataclass_fields__), wanted)

    def test_types_are_what_programs_compute_with(self):
        hints = typing.get_type_hints(messages.DeviceForecast)
        self.assertEqual((hints["peak_bytes"], hints["device"]), (int, str))
        hints = typing.get_type_hints(messages.Forecast)
        self.assertEqual(hints["step_time_ns"], typing.Optional[int])
        self.assertEqual(hints["fit"], typing.Literal["", "FITS", "DOES_NOT_FIT", "UNKNOWN"])
        self.assertEqual(hints["devices"], typing.Tuple[messages.DeviceForecast, ...])

    def test_the_version_is_that_of_the_project(self):
        project = (common.ROOT / "CMakeLists.txt").read_text()
        self.assertIn("VERSION " + spillway.__version__, project)
        self.assertEqual(spillway.__version__, spillway.library_version())


class SignatureTest(unittest.TestCase):

    def test_what_editors_see_is_what_a_type_checker_sees(self):
        for file, doors in DOORS.items():
            seen = doors_of(file)
            self.assertEqual(set(seen), set(doors), file)
            for name, function in doors.items():
                with self.subTest(file=file, door=name):
                    own, keywords = seen[name]
                    signature = inspect.signature(function)
                    kinds = {parameter.kind for parameter in signature.parameters.values()}
                    self.assertNotIn(inspect.Parameter.VAR_KEYWORD, kinds)
                    self.assertEqual(list(signature.parameters),
                                     own + [key for key in _doors.names(keywords)
                                            if key not in own])
                    # Twice is an error of mypy's: "Overlap between argument names and TypedDict".
                    self.assertFalse(set(own) & set(_doors.names(keywords)))
                    for parameter in list(signature.parameters.values())[1:]:
                        self.assertIsNot(parameter.annotation, inspect.Parameter.empty,
                                         parameter.name)

    def test_every_keyword_of_the_signature_is_one(self):
        """And the other way round: calls take at run time the keywords of the signature."""
        where = set(_questions._WHERE)
        every = options.COMMON | options.STEP | options.HARDWARE
        strategies = frozenset().union(*options.STRATEGIES.values(), *options.OTHERS.values())
        call = {"server", "timeout", "progress"} | where
        rewrite = {"strategy", "keep_best", "fail_open", "patch", "save_plan"} | call
        settled = {"cpu_device", "min_tensor_bytes", "inline_calls"}
        client = {"timeout", "progress", "token", "request_id", "traceparent"}
        step = options.STEP | options.HARDWARE
        for function, wanted in (
                (spillway.rewrite, rewrite | every | strategies),
                (spillway.apply, rewrite - {"strategy", "keep_best"} | every - settled),
                (spillway.strip, rewrite - {"strategy", "keep_best"}),
                (spillway.simulate, call | step | {"memory", "trace", "execution", "no_budget"}),
                (spillway.plot, call | step | {
                    "what", "file", "before", "format", "theme", "title", "plan", "throughput",
                    "execution", "no_budget", "sizes"}),
                (spillway.explore, call | step | {
                    "on_size", "sizes", "multiple_of", "swapping", "recompute", "no_budget"}),
                (spillway.inspect, call | {
                    "batch_size", "feeds", "largest_tensor_count", "on_tensors"}),
                (spillway.diff, call), (spillway.capabilities, call - {"progress"}),
                (spillway.Client, {"server"} | where - {"token", "request_id", "traceparent"}),
                (spillway.Client.rewrite, client | every | strategies | {
                    "strategy", "keep_best", "fail_open", "patch", "save_plan"}),
                (spillway.Client.simulate, client | step | {
                    "memory", "trace", "execution", "no_budget"}),
                (horovod.rewrite, rewrite | every | strategies | {
                    "folder", "rank", "size", "local_size", "wait"})):
            positional = {"graph", "graph_a", "graph_b", "plan", "self", "hvd"}
            names = set(inspect.signature(function).parameters)
            self.assertEqual(names - positional, set(wanted) - positional, function)

    def test_defaults_of_the_signature_change_nothing(self):
        graph = common.graph("cond_v1", shapes=True)
        given = {name: parameter.default
                 for name, parameter in inspect.signature(spillway.rewrite).parameters.items()
                 if name not in ("graph", "strategy", "plan")}
        common_names = options.COMMON | options.STEP | options.HARDWARE
        given = {name: value for name, value in given.items()
                 if name not in frozenset().union(*options.STRATEGIES.values())
                 or name in common_names | options.STRATEGIES["scope"]}
        self.assertEqual(spillway.rewrite(graph, strategy="scope", **given).graph_def,
                         spillway.rewrite(graph, strategy="scope").graph_def)


if __name__ == "__main__":
    unittest.main()
