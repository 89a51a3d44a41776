"""Wrong rewrites, and the check that must see each.

A test is a function of a checks.Result that it fills with problems of the harness. Right rewrites
must pass: without that, a harness that always fails would look good here.
"""
import dataclasses
import functools
import json
import os
import pathlib
import sys
import tempfile

import tensor_bytes
from truth import cases, checks, crossings, driver, feeds, graphs, names, rewrite, train
from selftest import handmade

HERE = pathlib.Path(__file__).resolve().parent
GRAPHS = HERE.parent.parent / "graphs"
SOME = cases.Expected(at_least=1, reason="the plan is made by hand")
_TESTS = {}


def all_tests():
    """{name: function}, in the order written."""
    return dict(_TESTS)


def test(function):
    _TESTS[function.__name__] = function
    return function


@dataclasses.dataclass(frozen=True)
class _Case(cases.Case):
    """A case with expectations of its own."""
    expected: cases.Expected = SOME

    def expected_for(self, graph):
        return self.expected


@functools.lru_cache(maxsize=None)
def _graph(name):
    return graphs.Graph(GRAPHS / name)


@functools.lru_cache(maxsize=None)
def _baseline(name):
    result = checks.Result()
    base = checks.baseline(_graph(name), result)
    if base is None:
        raise RuntimeError("; ".join(map(str, result.problems)))
    return base


def _found(name, rewriter, grappler=False, expected=SOME):
    """The checks' findings in one rewrite."""
    case = _Case(name, cases.ParameterSet("selftest", grappler=grappler), expected=expected)
    found = checks.Result()
    checks.check_case(_graph(name), case, rewriter, _baseline(name), found)
    return found


def _must_pass(result, found):
    for problem in found.problems:
        result.problem("selftest", "a right rewrite fails: %s" % str(problem))
    result.notes += found.notes


def _must_fail(result, found, check, saying=""):
    """`check` must be among the failed ones, with a message that holds `saying`."""
    messages = [p.message for p in found.problems if p.check == check]
    if not any(saying in m for m in messages):
        result.problem("selftest", "the check %s did not see it (saying %r); found: %s" % (
            check, saying, "; ".join(map(str, found.problems)) or "nothing"))
    seen = "seen by " + ", ".join(sorted(found.failed_checks()))
    if messages and seen not in result.notes:
        result.notes.append(seen)


def _spoiled(name, spoil, limit=4):
    return _found(name, handmade.HandRewriter(handmade.simple_plan(limit), spoil))


def must_see(name, *seen, limit=4, right=None, live=False):
    """A test whose function spoils a rewrite: each of `seen`, a check or one with a part of its
    message, must fail, and the check `right` must not."""
    def add(spoil):
        @functools.wraps(spoil)
        def run(result):
            found = (_spoiled_live if live else _spoiled)(name, spoil, limit)
            for check in seen:
                _must_fail(result, found, *((check,) if isinstance(check, str) else check))
            if right in found.failed_checks():
                result.problem("selftest", "the %s is right, and called wrong" % right)
        return test(run)
    return add


def _node(graph_def, name):
    return next(n for n in graph_def.node if n.name == name)


# --- right rewrites pass --------------------------------------------------------------------------

@test
def right_swaps_pass(result):
    _must_pass(result, _found("mnist_deep", handmade.HandRewriter(handmade.simple_plan(99))))


@test
def right_swaps_in_branches_pass(result):
    """Swaps inside of tf.cond are possible: cond_v1 needs no mercy."""
    rewriter = handmade.HandRewriter(handmade.simple_plan(99))
    _must_pass(result, _found("cond_v1", rewriter))
    in_branches = [s for s in rewriter.planner(train.parse(_graph("cond_v1").bytes), {
        "optimizer_scopes": _graph("cond_v1").optimizer_scopes})
                   if s["tensor"].startswith("branch/")]
    if not in_branches:
        result.problem("selftest", "the plan has no swap in a branch")


@test
def right_swaps_pass_with_grappler(result):
    _must_pass(result, _found("mnist_deep", handmade.HandRewriter(handmade.simple_plan(99)),
                              grappler=True))


@test
def swaps_outside_of_the_step_are_only_noted(result):
    """A consumer that no fetch needs does not run, and so its swap cannot cross."""
    def planner(graph_def, options):
        swaps = handmade.simple_plan(1)(graph_def, options)
        source = swaps[0]["tensor"]
        consumer = graph_def.node.add()
        consumer.name, consumer.op = "unused", "Identity"
        consumer.attr["T"].CopyFrom(_node(graph_def, names.node(source)).attr["T"])
        consumer.input.append(source)
        swaps.append({"tensor": source, "swap_out": "lms/swapout_unused", "swap_ins": [
            {"name": "lms/swapin_unused", "triggers": [],
             "consumers": [{"node": "unused", "input_index": 0}]}]})
        return swaps
    found = _found("mnist_deep", handmade.HandRewriter(planner))
    if not any("1 swap-outs and 1 swap-ins are no part of a step" in n for n in found.notes):
        result.problem("selftest", "not noted: %s" % found.notes)
    if "crossings" in found.failed_checks():
        result.problem("selftest", "%s" % found.problems)


# --- wrong values ---------------------------------------------------------------------------------

@test
def consumer_reads_another_tensor(result):
    """Same shape and type, so TensorFlow has nothing to say: a ReluGrad is given its gradient in
    the place of its features, by way of a swap that report and file agree on."""
    def planner(graph_def, options):
        del options
        consumer = next(n for n in graph_def.node if n.op == "ReluGrad")
        return [{"tensor": names.tensor(consumer.input[0]), "swap_out": "lms/swapout_wrong",
                 "swap_ins": [{"name": "lms/swapin_wrong", "triggers": [], "consumers": [
                     {"node": consumer.name, "input_index": 1}]}]}]
    found = _found("mnist_deep", handmade.HandRewriter(planner))
    _must_fail(result, found, "losses", "unrewritten")
    _must_fail(result, found, "weights", "another value")
    _must_fail(result, found, "report", "not")
    if "crossings" in found.failed_checks():
        result.problem("selftest", "the swap itself is right: %s" % found.problems)


@test
def weights_are_wrong_though_the_losses_are_right(result):
    """An update that is lost after the last loss was computed shows only in the variables."""
    def wrong(trained):
        name = sorted(trained.variables)[0]
        return dict(trained.variables, **{name: "other"})
    base = _baseline("mnist_deep")
    problems = list(checks.different_variables(wrong(base.trained), base.trained.variables))
    if len(problems) != 1:
        result.problem("selftest", "%d problems: %s" % (len(problems), problems))


@must_see("mnist_deep", ("weights", "another value"), ("report", "waits for less"))
def an_update_is_lost(graph_def, _report):
    """The train op no longer runs the update of one of Adam's counters."""
    train_op = _node(graph_def, "adam_optimizer/Adam")
    train_op.input.remove("^adam_optimizer/Adam/Assign_1")


# --- dead branches --------------------------------------------------------------------------------

@must_see("cond_v1", "losses", limit=99, right="report")
def trigger_in_the_branch_that_is_not_taken(graph_def, report):
    """A swap-in for one side of a tf.cond, gated by a node of the other side."""
    sides = {"Conv2D_2": [], "Conv2D_1": []}  # the sides of the cond `branch`
    for swap in report["swaps"]:
        for swap_in in swap["swap_ins"]:
            consumer = swap_in["consumers"][0]["node"]
            for side, found in sides.items():
                if consumer.startswith("gradients/branch/%s_grad/" % side):
                    found.append(swap_in)
    if not sides["Conv2D_1"]:
        raise AssertionError("no swap-in for that side: %s" % report["swaps"])
    swap_in = sides["Conv2D_1"][0]
    node = _node(graph_def, swap_in["name"])
    swap_in["triggers"] = ["branch/Conv2D_2"]
    del node.input[1:]
    node.input.append("^branch/Conv2D_2")


@must_see("cond_v1", "losses")
def trigger_in_a_branch_for_a_consumer_outside(graph_def, report):
    """A swap-in that every step needs, gated by one side of a tf.cond."""
    swap_in = report["swaps"][0]["swap_ins"][0]
    swap_in["triggers"] = ["branch/Conv2D_2"]
    node = _node(graph_def, swap_in["name"])
    del node.input[1:]
    node.input.append("^branch/Conv2D_2")


@test
def plan_of_tflms_for_cond_v1(result):
    """What IBM's program really does to this graph: it trains, silently, something else."""
    recorded = json.loads((HERE / "tflms_cond_v1.json").read_text())
    found = _found("cond_v1", handmade.HandRewriter(handmade.fixed_plan(recorded["swaps"])))
    _must_fail(result, found, "losses")
    if "report" in found.failed_checks():
        result.problem("selftest", "the plan is not that of the file: %s" % found.problems)


# --- swaps that do not swap -----------------------------------------------------------------------

@must_see("mnist_deep", ("crossings", "does not leave the device"),
          ("report", "is on '/device:GPU:0'"))
def swap_out_stays_on_the_device(graph_def, report):
    _node(graph_def, report["swaps"][0]["swap_out"]).device = "/device:GPU:0"


@must_see("mnist_deep", ("crossings", "does not bring"))
def swap_in_stays_on_the_device(graph_def, report):
    _node(graph_def, report["swaps"][0]["swap_ins"][0]["name"]).device = "/device:GPU:0"


@must_see("mnist_deep", ("crossings", "does not leave the device"))
def swap_nodes_without_a_device(graph_def, report):
    """They go where the others go."""
    for name in checks.swap_node_names(report):
        _node(graph_def, name).device = ""


@must_see("mnist_deep", ("crossings", ""), ("report", "reads"))
def consumer_still_reads_the_producer(graph_def, report):
    """In the report only: the swap-in has no reader, and is pruned."""
    swap = report["swaps"][0]
    consumer = swap["swap_ins"][0]["consumers"][0]
    _node(graph_def, consumer["node"]).input[consumer["input_index"]] = swap["tensor"]


@must_see("mnist_deep", ("crossings", "not planned"))
def something_else_crosses(graph_def, _report):
    """A node of the graph moved to the host."""
    next(n for n in graph_def.node if n.op == "MatMul").device = "/cpu:0"


@must_see("mnist_deep", ("crossings", "not planned"), ("report", "is new and not in the report"))
def one_swap_in_too_many(graph_def, report):
    """In the file, not in the report."""
    report["swaps"].pop()


def _wait_for_swap_out(graph_def, report):
    """Another reader of the first tensor swapped waits for its swap-out. Returns its name."""
    swap = report["swaps"][0]
    reader = next(n for n in graph_def.node if swap["tensor"] in map(names.tensor, n.input)
                  and n.name != swap["swap_out"])
    reader.input.append("^" + swap["swap_out"])
    return reader.name


@test
def readers_that_wait_for_a_swap_out_pass(result):
    def spoil(graph_def, report):
        report["swaps"][0]["deadline_nodes"] = [_wait_for_swap_out(graph_def, report)]
    _must_pass(result, _spoiled("mnist_deep", spoil))


@must_see("mnist_deep", ("report", "which the report does not say"))
def a_node_waits_and_the_report_does_not_say_so(graph_def, report):
    _wait_for_swap_out(graph_def, report)


@must_see("mnist_deep", ("report", "does not wait for"))
def a_node_does_not_wait_though_the_report_says_so(graph_def, report):
    swap = report["swaps"][0]
    reader = next(n for n in graph_def.node if swap["tensor"] in map(names.tensor, n.input))
    swap["deadline_nodes"] = [reader.name]


@must_see("mnist_deep", ("report", "1 control edges between original"))
def an_edge_between_original_nodes_is_not_counted(graph_def, _report):
    _node(graph_def, "conv2/Relu").input.append("^conv1/Relu")


# --- nodes that are recomputed --------------------------------------------------------------------

def _run_again(graph_def, report):
    """One gradient reads a clone of its input. Returns the clone."""
    reader = next(n for n in graph_def.node if n.op == "MaxPoolGrad" and n.input[0] == "conv2/Relu")
    clone = graph_def.node.add()
    clone.CopyFrom(_node(graph_def, "conv2/Relu"))
    clone.name = checks.CLONE + "conv2_Relu"
    clone.input.append("^" + names.node(reader.input[2]))
    reader.input[0] = clone.name
    report["recomputation"] = {"node_count": "1"}
    triggers = 1 + sum(len(swap_in["triggers"]) for _, swap_in in checks.swap_ins_of(report))
    report["added_control_edges"] = [{"kind": "EDGE_KIND_TRIGGER", "count": str(triggers)}]
    return clone


@test
def a_node_that_runs_again_passes(result):
    _must_pass(result, _spoiled("mnist_deep", _run_again, limit=1))


@must_see("mnist_deep", ("report", "1 nodes run again, 2 in the report"), limit=1)
def a_node_that_runs_again_is_not_there(graph_def, report):
    _run_again(graph_def, report)
    report["recomputation"]["node_count"] = "2"


@must_see("mnist_deep", ("report", "reads"), limit=1)
def what_runs_again_reads_something_else(graph_def, report):
    """Of the same value, so that no loss would show it."""
    _run_again(graph_def, report).input[0] = "conv2/Relu"


@must_see("mnist_deep", ("report", "1 control edges between original"), limit=1)
def what_runs_again_waits_for_more(graph_def, report):
    _run_again(graph_def, report).input.append("^conv1/Relu")


@must_see("mnist_deep", ("report", "is new and not in the report"), limit=1)
def something_new_runs(graph_def, report):
    clone = _run_again(graph_def, report)
    reader = next(n for n in graph_def.node if clone.name in n.input)
    clone.name = reader.input[0] = checks.CLONE + "conv9_Relu"


@test
def grappler_removes_swap_nodes(result):
    """Without the attribute that protects them."""
    def spoil(graph_def, report):
        for name in checks.swap_node_names(report):
            del _node(graph_def, name).attr["_grappler_do_not_remove"]
    rewriter = handmade.HandRewriter(handmade.simple_plan(99), spoil)
    _must_fail(result, _found("mnist_deep", rewriter, grappler=True), "grappler",
               "did not survive")


# --- live graphs ----------------------------------------------------------------------------------

def _found_live(name, editor, grappler=False):
    """The checks' findings in one edit of a live graph."""
    case = _Case(name, cases.ParameterSet("selftest", grappler=grappler), cases.LIVE)
    found = checks.Result()
    checks.check_live_case(_graph(name), case, editor, editor, _baseline(name), found)
    return found


def _spoiled_live(name, spoil, limit=4):
    return _found_live(name, handmade.HandEditor(handmade.simple_plan(limit), spoil))


def _without_control(op, unwanted):
    """Takes one control input away."""
    left = [one for one in op.control_inputs if one.name != unwanted]
    if len(left) == len(op.control_inputs):
        raise AssertionError("%s does not wait for %s" % (op.name, unwanted))
    op._remove_all_control_inputs()  # pylint: disable=protected-access
    op._add_control_inputs(left)  # pylint: disable=protected-access


@test
def right_live_edits_pass(result):
    for name in ("mnist_deep", "cond_v1"):
        _must_pass(result, _found_live(name, handmade.HandEditor(handmade.simple_plan(99))))


@test
def right_live_edits_pass_with_grappler(result):
    _must_pass(result, _found_live("mnist_deep", handmade.HandEditor(handmade.simple_plan(99)),
                                   grappler=True))


@must_see("mnist_deep", ("live", "control inputs of lms/swapin"),
          ("report", "waits for nothing"), live=True)
def live_swap_in_loses_its_trigger(tf_graph, report):
    """Every number is right; the tensor would come back at once."""
    swap_in = next(i for _, i in checks.swap_ins_of(report) if i["triggers"])
    _without_control(tf_graph.get_operation_by_name(swap_in["name"]), swap_in["triggers"][0])


@must_see("mnist_deep", ("weights", "another value"),
          ("live", "control inputs of adam_optimizer/Adam"), ("report", "waits for less"), live=True)
def live_node_loses_a_control_edge(tf_graph, _report):
    """The train op no longer runs the update of one of Adam's counters."""
    _without_control(tf_graph.get_operation_by_name("adam_optimizer/Adam"),
                     "adam_optimizer/Adam/Assign_1")


@must_see("mnist_deep", ("losses", "unrewritten"), ("weights", "another value"),
          ("live", "inputs of adam_optimizer/gradients"), ("report", "reads"), live=True)
def live_edit_rewires_another_consumer(tf_graph, report):
    """A ReluGrad gets the swapped tensor, which has the same shape, in place of its gradient."""
    for swap, swap_in in checks.swap_ins_of(report):
        op = tf_graph.get_operation_by_name(swap_in["consumers"][0]["node"])
        if op.type == "ReluGrad" and swap["tensor"].endswith("Relu:0"):
            back = tf_graph.get_tensor_by_name(swap_in["name"] + ":0")
            op._update_input(0, back)  # pylint: disable=protected-access
            return
    raise AssertionError("no ReluGrad: %s" % report["swaps"])


@must_see("mnist_deep", ("crossings", "does not bring"), ("live", "inputs of"), live=True)
def live_consumer_is_not_rewired(tf_graph, report):
    swap = report["swaps"][0]
    consumer = swap["swap_ins"][0]["consumers"][0]
    op = tf_graph.get_operation_by_name(consumer["node"])
    op._update_input(  # pylint: disable=protected-access
        consumer["input_index"], tf_graph.get_tensor_by_name(swap["tensor"]))


@must_see("mnist_deep", ("crossings", "does not leave the device"),
          ("live", "device of lms/swap"), live=True)
def live_swap_nodes_without_a_device(tf_graph, report):
    """They are pinned as the others."""
    for name in checks.swap_node_names(report):
        tf_graph.get_operation_by_name(name)._set_device("")  # pylint: disable=protected-access


@must_see("cond_v1", "losses", right="report", live=True)
def live_trigger_in_the_branch_that_is_not_taken(tf_graph, report):
    """A swap-in that every step needs waits for a node of one side of a tf.cond."""
    swap_in = report["swaps"][0]["swap_ins"][0]
    op = tf_graph.get_operation_by_name(swap_in["name"])
    _without_control(op, swap_in["triggers"][0])
    swap_in["triggers"] = ["branch/Conv2D_2"]
    op._add_control_inputs(  # pylint: disable=protected-access
        [tf_graph.get_operation_by_name(swap_in["triggers"][0])])


@test
def session_does_not_see_the_live_edit(result):
    """As one that ran the graph before: TensorFlow ignores the edit, the graph shows it. Every
    number is right, and nothing is swapped."""
    graph, editor = _graph("mnist_deep"), handmade.HandEditor(handmade.simple_plan(4))
    edited = train.imported(train.parse(graph.bytes))
    report = editor.edit(edited, "scope", {"optimizer_scopes": graph.optimizer_scopes})
    unedited = train.imported(train.parse(graph.bytes))
    found = checks.Result()
    checks.train_and_check(
        graph, _Case(graph.name, cases.ParameterSet("selftest"), cases.LIVE),
        functools.partial(train.train_live, graph, unedited), edited.as_graph_def(), report,
        _baseline(graph.name), found)
    if found.failed_checks() != {"crossings"}:
        result.problem("selftest", "not by the crossings alone: %s" % found.problems)
    _must_fail(result, found, "crossings", "does not leave the device")


class _OtherLive(handmade.HandEditor):
    """Breaks one of the promises about an edited graph."""

    def __init__(self, broken):
        super().__init__(handmade.simple_plan(2))
        self.broken = broken

    def edit(self, tf_graph, strategy, options):
        report = super().edit(tf_graph, strategy, options)
        if self.broken == "idempotent" and report["outcome"] == "OUTCOME_KEPT":
            handmade.apply_live(tf_graph, [{"tensor": "conv1/Relu:0", "swap_out": "lms/swapout_2",
                                            "swap_ins": []}])
        return report

    def strip(self, graph_bytes):
        stripped = train.parse(super().strip(graph_bytes))
        if self.broken == "strip":
            del stripped.node[-1]
        return stripped.SerializeToString()


@test
def live_graph_changes_when_edited_again(result):
    _must_fail(result, _found_live("mnist_deep", _OtherLive("idempotent")), "idempotent",
               "lms/swapout_2")


@test
def live_graph_is_another_one_when_stripped(result):
    _must_fail(result, _found_live("mnist_deep", _OtherLive("strip")), "strip",
               "saved and stripped")


@test
def package_says_no(result):
    """And its own words come through."""
    class Failing(handmade.HandEditor):
        def edit(self, tf_graph, strategy, options):
            raise rewrite.RewriteFailed("the graph is finalized")
    _must_fail(result, _found_live("mnist_deep", Failing(handmade.simple_plan(2))), "rewrite",
               "is finalized")


# --- bytes, plans and files -----------------------------------------------------------------------

class _Other(handmade.HandRewriter):
    """Gives other bytes in one of the three promises about bytes."""

    def __init__(self, broken):
        super().__init__(handmade.simple_plan(2))
        self.broken = broken
        self.runs = 0

    def rewrite(self, graph_bytes, strategy, options):
        again = graph_bytes in self.originals
        rewritten, report = super().rewrite(graph_bytes, strategy, options)
        self.runs += 1
        if (self.broken == "idempotent" and again) or (
                self.broken == "deterministic" and not again and self.runs > 1):
            # Two more bytes: an empty field that every protobuf reader skips.
            rewritten = rewritten + b"\x92\x3f\x00"
        return rewritten, report

    def strip(self, graph_bytes):
        stripped = super().strip(graph_bytes)
        return stripped[:-1] if self.broken == "strip" else stripped


@test
def other_bytes_each_time(result):
    _must_fail(result, _found("mnist_deep", _Other("deterministic")), "deterministic")


@test
def other_bytes_when_rewritten_again(result):
    _must_fail(result, _found("mnist_deep", _Other("idempotent")), "idempotent")


@test
def other_bytes_when_stripped(result):
    _must_fail(result, _found("mnist_deep", _Other("strip")), "strip")


@test
def nothing_is_swapped(result):
    rewriter = handmade.HandRewriter(handmade.fixed_plan([]))
    _must_fail(result, _found("mnist_deep", rewriter), "plan", "at least 1")


@test
def another_number_is_swapped(result):
    rewriter = handmade.HandRewriter(handmade.simple_plan(2))
    found = _found("mnist_deep", rewriter, expected=cases.Expected(tensors=3, swap_ins=99,
                                                                   at_most=1))
    _must_fail(result, found, "plan", "3 expected")
    _must_fail(result, found, "plan", "99 expected")
    _must_fail(result, found, "plan", "at most 1")


@test
def an_excluded_scope_is_swapped(result):
    rewriter = handmade.HandRewriter(handmade.simple_plan(99))
    found = _found("mnist_deep", rewriter, expected=cases.Expected(scopes_left_alone=("conv1",)))
    _must_fail(result, found, "plan", "conv1 is excluded")


@must_see("mnist_deep", ("import", "no GraphDef"))
def graph_is_cut_off(graph_def, _report):
    return graph_def.SerializeToString(deterministic=True)[:-7]


@must_see("mnist_deep", ("import", "import"))
def graph_has_a_dangling_input(graph_def, report):
    _node(graph_def, report["swaps"][0]["swap_out"]).input[0] = "nobody"


@test
def graph_has_a_cycle(result):
    """A swap-in that waits for its own consumer."""
    def spoil(graph_def, report):
        swap_in = report["swaps"][0]["swap_ins"][0]
        node = _node(graph_def, swap_in["name"])
        del node.input[1:]
        swap_in["triggers"] = [swap_in["consumers"][0]["node"]]
        node.input.append("^" + swap_in["triggers"][0])
    found = _spoiled("mnist_deep", spoil)
    if not found.failed_checks() & {"import", "losses"}:
        result.problem("selftest", "not seen: %s" % found.problems)


@test
def rewriter_says_no(result):
    """And the command line's own words come through."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "spillway"
        program.write_text("#!/bin/sh\necho 'no such scope' >&2\nexit 3\n")
        program.chmod(0o755)
        found = _found("mnist_deep", rewrite.SpillwayCommand(program))
    _must_fail(result, found, "rewrite", "no such scope")


@test
def sizes_are_wrong(result):
    """One byte too many in the report."""
    graph = _graph("mnist_deep")
    report = {"swaps": [{"tensor": "conv1/Relu:0", "size_bytes": str(8 * 28 * 28 * 32 * 4)},
                        {"tensor": "pool1/MaxPool:0", "size_bytes": str(8 * 14 * 14 * 32 * 4 + 1)}]}
    found = checks.Result()
    checks.check_sizes(graph, graph.bytes, report, found)
    if len(found.problems) != 1:
        result.problem("selftest", "%d problems" % len(found.problems))
    _must_fail(result, found, "sizes", "pool1/MaxPool:0")


@test
def bytes_of_a_trace_are_others(result):
    """tensor_bytes.py: differences that it must see, or excuse and count."""
    whole = tensor_bytes.Output("whole:0", "float32", "[200,4]", 3200, 3200, 3328, 16)
    right = tensor_bytes.Inferred("float32", "[200,4]", 3200, True)
    for output, inferred, counted in (
            ({}, {}, "equal"),
            ({}, {"dtype": "float16"}, None),
            ({}, {"shape": "[200,3]"}, None),
            ({}, {"shape": "[800]"}, None),
            ({}, {"shape": "[?,3]", "size": None}, None),
            ({}, {"shape": "[?]", "size": None}, None),
            ({}, {"shape": "[?,4]", "size": None}, "unknown"),
            ({}, {"shape": "?", "size": None}, "unknown"),
            ({}, {"size": None, "read": False}, "unread"),
            ({}, {"shape": "[4,200]", "size": None, "read": False}, None),
            ({}, {"size": 3204}, None),
            ({"requested": 3204}, {}, None),
            ({"allocated": 3072}, {}, None),  # too few
            ({"allocated": 6656}, {}, None),  # what would be split
            ({"allocated": 6400}, {}, "equal"),
            ({"allocated": 0}, {}, "not_allocated"),
            ({"shape": "[100,4]", "size": 1600, "requested": 3200},
             {"shape": "[100,4]", "size": 1600}, "parts"),
            # A part of what?
            ({"shape": "[100,4]", "size": 1600, "requested": 3200, "pointer": 32},
             {"shape": "[100,4]", "size": 1600}, None),
            ({"dtype": "resource", "shape": "[]"}, {"dtype": "resource", "shape": "[2]"},
             "handles")):
        found = tensor_bytes.compare(
            [whole, whole._replace(tensor="x:0", **output)], {"x:0": right._replace(**inferred)})
        # The whole is not the graph's, and not compared.
        if bool(found.problems) != (counted is None) or found.elsewhere != 1 or (
                counted is not None and getattr(found, counted) != 1):
            result.problem("selftest", "%s, %s: %s %s" % (output, inferred, found.problems, found))


# --- the recorded answers -------------------------------------------------------------------------

@test
def recorded_losses_are_others(result):
    graph = graphs.Graph(GRAPHS / "mnist_deep")
    losses = _baseline("mnist_deep").trained.losses
    name = next(iter(losses))
    exact = [float.fromhex(bits) for bits in losses[name]]
    for factor, step, seen in ((1 + 1e-7, 0, False), (1 + 1e-3, 0, True), (1.5, 3, True)):
        graph.recorded = {name: [v * (factor if i == step else 1) for i, v in enumerate(exact)]}
        found = checks.Result()
        checks.compare_with_recorded(graph, losses, found)
        if ("recorded" in found.failed_checks()) != seen:
            result.problem("selftest", "a factor of %r in step %d: %s" % (factor, step,
                                                                           found.problems))
        if not seen and not any("another processor" in n for n in found.notes):
            result.problem("selftest", "not noted: %s" % found.notes)


@test
def one_bit_counts(result):
    """Losses are compared by their bits."""
    ours = {"loss:0": [(1.0).hex(), (2.0).hex()]}
    theirs = {"loss:0": [(1.0).hex(), (2.0 + 2 ** -22).hex()]}
    if len(list(checks.different_losses(ours, theirs))) != 1:
        result.problem("selftest", "not seen")
    if list(checks.different_losses(ours, ours)):
        result.problem("selftest", "seen where there is none")


@test
def grappler_excuses_bits_only_where_it_changes_them(result):
    """Of the unrewritten graph, too; and then the losses must still be near."""
    def trained(loss):
        run = train.Trained()
        run.losses = {"loss:0": [loss.hex()]}
        return run
    near = 1.0 + 2 ** -20
    for plain, with_grappler, rewritten, seen in (
            (1.0, 1.0, near, True), (1.0, near, near, False), (1.0, near, near + 2 ** -20, False),
            (1.0, near, 1.01, True)):
        base = checks.Baseline(trained(plain))
        base.with_grappler = trained(with_grappler)
        found = checks.Result()
        checks.check_with_grappler(None, base, trained(rewritten), found)
        if ("grappler" in found.failed_checks()) != seen:
            result.problem("selftest", "%r, with Grappler %r, rewritten %r: %s" % (
                plain, with_grappler, rewritten, found.problems))


@test
def feeds_are_those_documented(result):
    """Numbers of numpy's RandomState, which are fixed for ever."""
    common = {"name": "x:0", "seed": 7}
    normal = feeds.feed(dict(common, kind="normal", dtype="float32", shape=[2], loc=1.0,
                             scale=2.0), 1)
    randint = feeds.feed(dict(common, kind="randint", dtype="int32", shape=[3], low=0, high=10), 1)
    onehot = feeds.feed(dict(common, kind="onehot", dtype="float32", shape=[3, 10]), 1)
    constant = feeds.feed(dict(common, kind="constant", dtype="float32", shape=[], value=0.5), 1)
    if [round(float(v), 4) for v in normal] != [1.1824, 3.1826] or str(normal.dtype) != "float32":
        result.problem("selftest", "normal: %s" % normal)
    if randint.tolist() != [3, 4, 1]:
        result.problem("selftest", "randint: %s" % randint)
    if onehot.argmax(axis=1).tolist() != [3, 4, 1] or onehot.sum() != 3:
        result.problem("selftest", "onehot: %s" % onehot)
    if constant.shape != () or constant != 0.5:
        result.problem("selftest", "constant: %s" % constant)


@test
def a_step_of_several_calls(result):
    """run_sequence: each pair in a session call of its own, each loss under its name."""
    graph = graphs.Graph(GRAPHS / "mnist_deep")
    one = train.train(graph, graph.bytes, variables=[])
    graph.meta = dict(graph.meta, run_sequence=[["adam_optimizer/Adam", "loss/Mean:0"],
                                                ["conv1/Relu", "accuracy/Mean:0"]])
    two = train.train(graph, graph.bytes, variables=[])
    if sorted(two.losses) != ["accuracy/Mean:0", "loss/Mean:0"] or len(two.partitions) != 2:
        result.problem("selftest", "%s, %d calls" % (sorted(two.losses), len(two.partitions)))
    if [len(values) for values in two.losses.values()] != [4, 4]:
        result.problem("selftest", "%s" % two.losses)
    if two.losses["loss/Mean:0"][0] != one.losses["loss/Mean:0"][0]:
        result.problem("selftest", "another first loss")


# --- crossings and processes ------------------------------------------------------------------------

@test
def devices_are_mapped(result):
    for device, expected in (("/device:GPU:1", "/device:CPU:2"), ("/gpu:0", "/device:CPU:1"),
                             ("/job:w/task:3/device:GPU:0", "/job:w/task:3/device:CPU:1"),
                             ("/device:CPU:0", "/device:CPU:0"), ("/GPU:0", "/device:CPU:1")):
        if names.on_cpus(device) != expected:
            result.problem("selftest", "%s -> %s" % (device, names.on_cpus(device)))


@test
def control_edges_feeds_and_fetches_do_not_count(result):
    """The unrewritten graph, pinned to one device, has no crossing, though it is fed and fetched;
    a control edge across devices adds none."""
    base = _baseline("mnist_deep")
    if base.crossings:
        result.problem("selftest", "%s" % base.crossings)
    graph = _graph("mnist_deep")
    graph_def = train.parse(graph.bytes)
    waiting = graph_def.node.add()
    waiting.name, waiting.op, waiting.device = "waiting", "NoOp", "/cpu:0"
    waiting.input.append("^conv1/Relu")
    _node(graph_def, "adam_optimizer/Adam").input.append("^waiting")
    trained = train.train(graph, graph_def.SerializeToString(), variables=[])
    present = crossings.nodes(trained.partitions[0])
    if "waiting" not in present or present["waiting"].device != "CPU:0" or not any("/ctrl/_" in n for n in present):
        result.problem("selftest", "no control edge crosses")
    if crossings.find(trained.partitions[0]):
        result.problem("selftest", "%s" % crossings.find(trained.partitions[0]))


_DYING_WORKER = """
import json, sys, time, os
job = json.load(sys.stdin)
for name in job["sets"]:
    print(json.dumps({"event": "start", "case": "g/" + name}), flush=True)
    if name == "dies": os._exit(9)
    if name == "hangs": time.sleep(60)
    print(json.dumps({"event": "end", "case": "g/" + name, "problems": [], "notes": [],
                      "seconds": 0, "skipped": None}), flush=True)
"""


@test
def a_worker_dies_or_hangs(result):
    """Only the case it was in fails; the others run."""
    outcomes = {}
    driver.run_job(driver.Job("g", {}, ["one", "dies", "two", "hangs", "three"]), 2,
                   lambda outcome: outcomes.setdefault(outcome.case, outcome),
                   [sys.executable, "-c", _DYING_WORKER])
    passed = sorted(name for name, outcome in outcomes.items() if outcome.passed)
    if passed != ["g/one", "g/three", "g/two"] or len(outcomes) != 5:
        result.problem("selftest", "passed: %s of %s" % (passed, sorted(outcomes)))


@test
def a_problem_fails_the_run(result):
    """The closing line and the exit code."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        progress = driver.Progress(3, stream=nowhere)
        progress(driver.Outcome("a"))
        progress(driver.Outcome("b", skipped="no reason"))
        if not progress.close():
            result.problem("selftest", "a run without failures fails")
        progress(driver.Outcome("c", problems=[("losses", "other")]))
        if progress.close() or (progress.passed, progress.failed, progress.skipped) != (1, 1, 1):
            result.problem("selftest", "a failed case does not fail the run")
