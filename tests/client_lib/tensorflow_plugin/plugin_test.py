#!/usr/bin/env python3
"""The plug-in in real TensorFlow: programs that know nothing of it, with and without it. The last
line is `N passed, N failed`.

    plugin_test.py [-k PATTERN]

To be run by a Python with TensorFlow 2.15; SPILLWAY_BUILD (default: build) has the plug-in
(lib/tensorflow-plugins) and the library. Two programs run at a time.
"""
import argparse
import concurrent.futures
import functools
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "python"))
import common  # noqa: E402  pylint: disable=wrong-import-position
import run  # noqa: E402  pylint: disable=wrong-import-position

PROGRAMS = FOLDER / "programs"
PLUGINS = common.BUILD / "lib" / "tensorflow-plugins"
PLUGIN = PLUGINS / "libspillway_tensorflow_cpu.so"
RUNS_AT_ONCE = 2

# Where everything that TensorFlow places on CPU:0 counts as if it were on a GPU of this size.
TRIAL = {"SPILLWAY_GPU_STAND_IN": "CPU:0", "SPILLWAY_CPU_DEVICE": "CPU:1",
         "SPILLWAY_GPU_MEMORY_BYTES": "360KiB"}
# For the session program: here the plan swaps no placeholder, whose value is on the host anyway.
SESSION = {**TRIAL, "SPILLWAY_GPU_MEMORY_BYTES": "350KiB", "SPILLWAY_JOB_BATCH_SIZE": "128"}
SAME_BITS = {"SPILLWAY_SAME_BITS": "1"}
# Grappler reports the work of each optimizer.
OPTIMIZERS = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "meta_optimizer=1"}
# A slow link, with which recomputation pays; without a reserve, so that no plan is refused for its
# results in variations, which differ by version of Keras.
RUN_AGAIN = {"SPILLWAY_OPTIONS": json.dumps({
    "budget": {"recompute": "RECOMPUTE_ALL"},
    "step": {"hardware": {"d2h_bytes_per_s": 1e7, "h2d_bytes_per_s": 1e7, "allocator_reserve": 0}}})}
# Each program's arguments, by its name; started together.
REPORTS, REPORTS_ON_HOST = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
RUNS = {
    "keras": ("keras_fit", None, {}),
    "keras, planned": ("keras_fit", PLUGINS, {
        **TRIAL, **SAME_BITS, "SPILLWAY_REPORT_DIR": REPORTS.name}),
    "keras, same bits, not planned": ("keras_fit", PLUGINS, SAME_BITS),
    "keras, plug-in without work": ("keras_fit", PLUGINS, {}),
    "keras, recompute": ("keras_fit", PLUGINS, {
        **TRIAL, **RUN_AGAIN, "SPILLWAY_GPU_MEMORY_BYTES": "290KiB"}),
    "variables on the host": ("host_variables", PLUGINS, {
        **TRIAL, "SPILLWAY_GPU_MEMORY_BYTES": "16MiB",
        "SPILLWAY_REPORT_DIR": REPORTS_ON_HOST.name}),
    "keras, XLA": ("keras_xla", PLUGINS, TRIAL),
    "activations fed": ("fed_session", None, {}),
    "activations fed, planned": ("fed_session", PLUGINS, {
        **TRIAL, **RUN_AGAIN, "SPILLWAY_GPU_MEMORY_BYTES": "700KiB"}),
    "session": ("session", None, {}),
    "session, planned": ("session", PLUGINS, {**SESSION, **OPTIMIZERS}),
    "session, same bits": ("session", PLUGINS, {**SESSION, **OPTIMIZERS, **SAME_BITS}),
    "session, another allocator": ("session", PLUGINS, {
        **SESSION, "TF_GPU_ALLOCATOR": "cuda_malloc_async"}),
    "session, scope, by a file": ("session", PLUGINS, {
        "SPILLWAY_GPU_STAND_IN": "CPU:0", "SPILLWAY_CPU_DEVICE": "CPU:1",
        "SPILLWAY_SETTINGS": str(pathlib.Path(REPORTS.name) / "settings")}),
    "session, unknown batch": ("session", PLUGINS, TRIAL),
    "session, bad setting": ("session", PLUGINS, {**TRIAL, "SPILLWAY_JOB_BATCH_SIZE": "many"}),
    "session, fail closed": ("session", PLUGINS, {**TRIAL, "SPILLWAY_FAIL_CLOSED": "1"}),
    "session, no library": ("session", PLUGIN, {
        **SESSION, "SPILLWAY_LIBRARY": "/nowhere/libspillway.so.0"}),
}


class Ran:
    """A program that has ended."""

    def __init__(self, done):
        self.code, self.lines = done.returncode, done.stdout.splitlines()
        self.spillway = [line for line in self.lines if line.startswith("spillway: ")]
        self.result = next((line for line in self.lines if line.startswith("RESULT ")), None)
        self.swaps = next((json.loads(line) for line in self.lines if line.startswith('{"out"')), None)


def start(program, plugins, variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("SPILLWAY_")}
    environment.update(common.TENSORFLOW, SPILLWAY_LIBRARY=str(common.LIBRARY))
    if plugins is not None:
        environment["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(plugins)
    environment.update(variables)
    return Ran(subprocess.run(
        [sys.executable, str(FOLDER / "drive.py"), str(program)],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=common.PATIENCE_S, check=False))


@functools.lru_cache(maxsize=None)
def results():
    """Of all RUNS, by their names."""
    (pathlib.Path(REPORTS.name) / "settings").write_text(json.dumps(
        {"strategy": "scope", "options": {"min_tensor_bytes": "32768"}}))
    with common.server() as address, \
            concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
        RUNS["session, on a server"] = (
            "session", PLUGINS, {**SESSION, "SPILLWAY_SERVER": address})
        started = {name: pool.submit(start, PROGRAMS / (program + ".py"), *rest)
                   for name, (program, *rest) in RUNS.items()}
        return {name: future.result() for name, future in started.items()}


class ProgramTest(unittest.TestCase):

    def ran(self, name):
        ran = results()[name]
        self.assertEqual(ran.code, 0, ran.lines)
        self.assertIsNotNone(ran.result, ran.lines)
        return ran

    def check_same_bits_with_swaps(self, plain, planned):
        plain, planned = self.ran(plain), self.ran(planned)
        self.assertEqual(plain.swaps, {"out": [], "back": [], "nodes": 0})
        self.assertEqual(planned.result, plain.result)
        self.assertGreaterEqual(len(planned.swaps["out"]), 3)
        self.assertGreaterEqual(len(planned.swaps["back"]), 3)
        self.assertEqual(len(planned.spillway), 1, planned.spillway)
        line, = planned.spillway
        # A strategy that plans for no memory leaves its step larger than the GPU, or unknown.
        tensors = int(re.search(r" nodes\): .*fits? with (\d+) swap", line).group(1))
        self.assertEqual(len(planned.swaps["out"]), tensors)  # All reported tensors crossed.
        return line

    def test_an_unchanged_keras_program(self):
        # (Without SAME_BITS a weight's last bit differs with some plans in TensorFlow 2.16 and 2.21.)
        line = self.check_same_bits_with_swaps("keras, same bits, not planned", "keras, planned")
        self.assertRegex(line, r"fits with \d+ swaps( and \d+ recomputed nodes?)?, [0-9.]+ KiB, .*, "
                               r"host memory [0-9.]+ KiB")

    def test_nodes_that_run_again(self):
        """With Grappler on, the last bits of the losses may differ."""
        def losses(name):
            return [float.fromhex(text) for text in re.findall(r"'(\S+)'", self.ran(name).result)]
        line, = self.ran("keras, recompute").spillway
        self.assertRegex(line, r"fits with (\d+ swaps? and )?\d+ recomputed nodes?, ")
        expected = losses("keras")
        self.assertEqual(len(expected), 2)
        for mine, plain in zip(losses("keras, recompute"), expected):
            self.assertAlmostEqual(mine, plain, delta=1e-5 * plain)

    def test_a_step_that_xla_has_taken(self):
        """One line, of the training alone; the program trains by XLA."""
        line, = self.ran("keras, XLA").spillway
        self.assertRegex(line, r"^spillway: graph of '.*' \(\d+ nodes\): its step is compiled by XLA, "
                               r".*pass jit_compile=False")

    def test_a_session_that_feeds_activations(self):
        """A clone would not see the fed value: such steps stay unchanged, with a line."""
        plain, planned = self.ran("activations fed"), self.ran("activations fed, planned")
        expected, sums = (json.loads(ran.result[len("RESULT "):]) for ran in (plain, planned))
        self.assertEqual(len(expected), 19)
        for right, mine in zip(expected, sums):
            for one, other in zip(right, mine):
                self.assertAlmostEqual(other, one, delta=1e-4 * abs(one))
        again = [line for line in planned.spillway if "recomputed node" in line]
        self.assertEqual(len(again), 1, planned.spillway)  # Of the first step, which feeds none.
        refused = [line for line in planned.spillway if "which is no placeholder" in line]
        self.assertEqual(len(refused), len(expected) - 1, planned.spillway)

    def test_the_report_of_each_function(self):
        planned = self.ran("keras, planned")
        path, = glob.glob(REPORTS.name + "/*.json")
        self.assertTrue(planned.spillway[0].endswith("; report: " + path))
        report = json.loads(pathlib.Path(path).read_text())
        self.assertEqual(report["outcome"], "OUTCOME_REWRITTEN")
        self.assertEqual({swap["swap_out"] for swap in report["swaps"]}, set(planned.swaps["out"]))
        self.assertEqual({one["name"] for swap in report["swaps"] for one in swap["swap_ins"]},
                         set(planned.swaps["back"]))
        # TensorFlow shows each graph twice: one report, no swap of a swap.
        self.assertFalse(any("lms_swap" in name for name in planned.swaps["out"]))

    def test_variables_on_the_host_are_not_on_the_gpu(self):
        self.ran("variables on the host")
        path, = glob.glob(REPORTS_ON_HOST.name + "/*.json")
        device, = json.loads(pathlib.Path(path).read_text())["forecast_before"]["devices"]
        self.assertAlmostEqual(int(device["resident_bytes"]), 64 << 10, delta=2048)  # And constants.

    def test_an_unchanged_session_program(self):
        self.check_same_bits_with_swaps("session", "session, planned")

    def test_the_same_bits(self):
        self.check_same_bits_with_swaps("session", "session, same bits")
        for name, expected in (("session, planned", True), ("session, same bits", False)):
            log = "\n".join(self.ran(name).lines)
            self.assertEqual("arithmetic_optimizer: " in log, expected, name)
            self.assertIn("constant_folding: ", log)  # The others still run.

    def test_a_server(self):
        line = self.check_same_bits_with_swaps("session", "session, on a server")
        self.assertEqual(line, self.ran("session, planned").spillway[0])

    def test_an_allocator_that_plans_are_not_made_for(self):
        told, warned = self.ran("session, another allocator").spillway
        self.assertEqual(told, self.ran("session, planned").spillway[0])
        self.assertIn("unset TF_GPU_ALLOCATOR", warned)

    def test_a_file_of_settings(self):
        self.check_same_bits_with_swaps("session", "session, scope, by a file")

    def check_untouched(self, name, *texts, plain="session"):
        ran = self.ran(name)
        self.assertEqual(ran.result, self.ran(plain).result)
        self.assertEqual(ran.swaps, {"out": [], "back": [], "nodes": 0})
        self.assertEqual(len(ran.spillway), len(texts) > 0, ran.spillway)
        for text in texts:
            self.assertIn(text, ran.spillway[0])

    def test_a_machine_without_gpu_hears_nothing(self):
        self.check_untouched("keras, plug-in without work", plain="keras")

    def test_an_unknown_batch(self):
        self.check_untouched("session, unknown batch", "the batch of node 'images' is not known",
                             "batch_size is SPILLWAY_JOB_BATCH_SIZE here")

    def test_a_setting_that_cannot_be_used(self):
        self.check_untouched("session, bad setting", "SPILLWAY_JOB_BATCH_SIZE is 'many'; it has to")

    def test_without_the_library(self):
        self.check_untouched("session, no library", "the plug-in cannot load Spillway's library",
                             "/nowhere/libspillway.so.0")

    def test_fail_closed(self):
        ran = results()["session, fail closed"]
        self.assertEqual(ran.code, 1, ran.lines)
        self.assertIsNone(ran.result)
        self.assertIn("as SPILLWAY_FAIL_CLOSED requires", ran.spillway[-1])


# Another TensorFlow: the functions that the plug-in looks for first.
OTHER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "tensorflow/c/experimental/grappler/grappler.h"
#define SHOWN __attribute__((visibility("default")))
#ifdef VERSION
SHOWN const char* TF_Version() { return VERSION; }
SHOWN TF_Status* TF_NewStatus() { return nullptr; }
SHOWN void TF_DeleteStatus(TF_Status*) {}
SHOWN TF_Code TF_GetCode(const TF_Status*) { return TF_OK; }
SHOWN void TF_GetNodesToPreserveListSize(const TF_GrapplerItem*, int*, size_t*, TF_Status*) {}
SHOWN void TF_GetNodesToPreserveList(const TF_GrapplerItem*, char**, size_t*, int, void*, size_t,
                                     TF_Status*) {}
SHOWN void TF_GetFetchNodesListSize(const TF_GrapplerItem*, int*, size_t*, TF_Status*) {}
SHOWN void TF_GetFetchNodesList(const TF_GrapplerItem*, char**, size_t*, int, void*, size_t,
                                TF_Status*) {}
#endif
// Prints the types of device that the plug-in registers for, of each file in turn.
extern "C" SHOWN int Register(const char* path, int params_size, char* type) {
  TP_OptimizerRegistrationParams params = {};
  TP_Optimizer optimizer = {TP_OPTIMIZER_STRUCT_SIZE};
  TP_OptimizerConfigs configs = {TP_OPTIMIZER_CONFIGS_STRUCT_SIZE};
  params.struct_size = params_size < 0 ? TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE : params_size;
  params.optimizer = &optimizer;
  params.optimizer_configs = &configs;
  params.patch_version = GO_PATCH;
  void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return 1;
  auto* init = (void (*)(TP_OptimizerRegistrationParams*, TF_Status*))dlsym(plugin, "TF_InitGraph");
  if (init == nullptr) return 2;
  init(&params, nullptr);
  strcpy(type, params.device_type);
  return optimizer.optimize_func == nullptr || params.struct_size == 0 || configs.struct_size == 0 ? 3 : 0;
}
"""
CALL = """
import ctypes, sys
host = ctypes.CDLL(sys.argv[1])
for path in sys.argv[3:]:
    text = ctypes.create_string_buffer(100)
    code = host.Register(path.encode(), int(sys.argv[2]), text)
    print(code, text.value.decode())
"""


class OtherTensorFlowTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        import importlib.util
        place = importlib.util.find_spec("tensorflow").submodule_search_locations[0]
        cls.include = place + "/include"

    def register(self, version, *paths, params_size=-1):
        """The plug-in's output, and the types of device that it registers for."""
        library = "%s/host%s.so" % (self.folder.name, version)
        source = self.folder.name + "/host.cc"
        pathlib.Path(source).write_text(OTHER)
        define = ["-DVERSION=\"%s\"" % version] if version else []
        subprocess.run(["c++", "-shared", "-fPIC", "-w", "-isystem", self.include,
                        *define, source, "-o", library], check=True, timeout=common.PATIENCE_S)
        done = subprocess.run([sys.executable, "-c", CALL, library, str(params_size), *map(str, paths)],
                              text=True, capture_output=True, timeout=common.PATIENCE_S, check=True)
        pairs = [line.split(" ", 1) for line in done.stdout.splitlines()]
        self.assertEqual({code for code, _ in pairs}, {"0"}, done)
        return done.stderr, [kind for _, kind in pairs]

    def test_versions(self):
        self.assertEqual(self.register("2.15.1", PLUGIN), ("", ["CPU"]))
        self.assertEqual(self.register("2.21.0", PLUGIN), ("", ["CPU"]))
        for version in ("2.14.1", "1.15.5", "3.0.0"):
            said, (kind,) = self.register(version, PLUGIN)
            self.assertEqual(
                said, "spillway: this is TensorFlow %s; the plug-in needs TensorFlow 2.15 or later of "
                "version 2; the program runs without swaps\n" % version)
            self.assertTrue(kind.startswith("SPILLWAY_OFF_"), kind)

    def test_another_interface(self):
        said, (kind,) = self.register("2.15.1", PLUGIN, params_size=8)
        self.assertIn("the interface for graph optimizers of TensorFlow 2.15.1 differs", said)
        self.assertTrue(kind.startswith("SPILLWAY_OFF_"), kind)
        said, (kind,) = self.register("", PLUGIN)
        self.assertIn("this TensorFlow has no function TF_Version", said)
        self.assertTrue(kind.startswith("SPILLWAY_OFF_"), kind)

    def test_a_second_copy_registers_for_nothing(self):
        copy = pathlib.Path(self.folder.name) / PLUGIN.name
        copy.write_bytes(PLUGIN.read_bytes())
        said, kinds = self.register("2.15.1", PLUGIN, copy, PLUGIN, PLUGINS / "libspillway_tensorflow_gpu.so")
        self.assertEqual(said, "")
        self.assertEqual([kinds[0], kinds[3]], ["CPU", "GPU"])
        self.assertTrue(all(kind.startswith("SPILLWAY_OFF_") for kind in kinds[1:3]), kinds)
        self.assertEqual(len(set(kinds)), 4)  # TensorFlow ends a process that registers one twice.


# The Python package beside the plug-in, in one process: they have one library.
BOTH = """
import runpy, spillway
spillway.capabilities()
runpy.run_path(%r, run_name="__main__")
spillway.capabilities()
with open("/proc/self/maps") as maps:
    files = {line.split()[-1] for line in maps if "libspillway_client.so" in line}
print("LIBRARIES", *files)
"""


class WheelTest(unittest.TestCase):

    def test_installed_wheels_need_no_setting_to_be_found(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        tree, wheels = pathlib.Path(folder.name) / "tree", folder.name + "/wheels"
        # TensorFlow looks at folders of sys.path that are called so.
        site = folder.name + "/site-packages"
        for name in ("python", "tensorflow_plugin"):
            shutil.copytree(common.ROOT / "client_lib" / name, tree / "client_lib" / name,
                            ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        shutil.copy(common.ROOT / "CMakeLists.txt", tree)
        shutil.copytree(common.ROOT / "proto", tree / "proto")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        environment = {**os.environ, "SPILLWAY_LIBRARY": str(common.LIBRARY),
                       "SPILLWAY_TENSORFLOW_PLUGINS": str(PLUGINS)}

        def call(*arguments):
            done = subprocess.run([*pip, *arguments], env=environment, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=common.PATIENCE_S)
            self.assertEqual(done.returncode, 0, done.stdout)

        for name in ("python", "tensorflow_plugin"):
            call("wheel", "--no-deps", "--no-build-isolation", "-w", wheels,
                 str(tree / "client_lib" / name))
        wheel, = glob.glob(wheels + "/spillway_tensorflow-*-py3-none-linux_*.whl")
        call("install", "--no-deps", "--target", site, *glob.glob(wheels + "/*.whl"))
        self.assertEqual(sorted(os.listdir(site + "/tensorflow-plugins")),
                         ["libspillway_tensorflow_cpu.so", "libspillway_tensorflow_gpu.so"], wheel)
        program = pathlib.Path(folder.name) / "both.py"
        program.write_text(BOTH % str(PROGRAMS / "session.py"))
        ran = start(program, None, {**SESSION, "SPILLWAY_LIBRARY": "", "PYTHONPATH": site})
        self.assertEqual(ran.code, 0, ran.lines)
        self.assertEqual(ran.result, results()["session"].result)
        self.assertGreaterEqual(len(ran.swaps["out"]), 3)
        libraries, = [line.split()[1:] for line in ran.lines if line.startswith("LIBRARIES")]
        self.assertEqual(libraries, [site + "/spillway/lib/libspillway_client.so.0"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", dest="pattern", help="only tests whose name holds PATTERN")
    flags = parser.parse_args()
    loader = unittest.TestLoader()
    if flags.pattern:
        loader.testNamePatterns = ["*%s*" % flags.pattern]
    suite = loader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2, resultclass=run.Result).run(suite)
    failed = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.passed, failed))
    return failed != 0 or result.passed == 0


if __name__ == "__main__":
    sys.exit(main())
