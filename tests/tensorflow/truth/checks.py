"""The checks of one case: one graph rewritten with one set of parameters.

Every problem found carries the name of its check:
  rewrite        the rewriter answers
  plan           the plan has the swaps it must have
  report         the report is true of the file, and nothing else was edited
  deterministic  the same request gives the same bytes
  strip          strip gives the input back, byte for byte
  idempotent     rewriting the rewritten file with the same options gives the same bytes
  live           (edited in place) the edit made the graph that the program makes of the same one
  import         TensorFlow imports the rewritten graph
  losses         training gives the same losses, bit for bit
  weights        ... and the same variables after the last step
  crossings      every planned swap really leaves the device and comes back, and nothing else does
  sizes          the sizes of the report are those of the tensors when they are computed
  grappler       the swap nodes survive Grappler, and the losses are still the same
  recorded       (of the unrewritten graph) the losses are those recorded in losses.json
"""
import functools
import re
from typing import NamedTuple

from truth import crossings, names, rewrite, train

UNDO = "_spillway_undo"
CLONE = "lms/recompute_"  # With this begin the names of nodes that run an original again.
HOST = "CPU:0"


class Problem(NamedTuple):
    check: str
    message: str

    def __str__(self):
        return "%s: %s" % tuple(self)


class Result:
    """Problems, and notes on other findings."""

    def __init__(self):
        self.problems = []
        self.notes = []

    def problem(self, check, message):
        self.problems.append(Problem(check, message))

    def problems_from(self, check, messages, shown=4):
        messages = list(messages)
        for message in messages[:shown]:
            self.problem(check, message)
        if len(messages) > shown:
            self.problem(check, "... and %d more" % (len(messages) - shown))

    def failed_checks(self):
        return {p.check for p in self.problems}


# --- the unrewritten graph -----------------------------------------------------------------------

class Baseline:
    """The unrewritten graph, trained here."""

    def __init__(self, trained):
        self.trained = trained
        self.crossings = set().union(*[crossings.find(p) for p in trained.partitions])
        self.with_grappler = None  # trained with Grappler on, when somebody needed it


# How far the losses may be from the recorded ones on another processor, relatively: the first, and
# the later ones, in which training multiplies the difference.
FIRST_LOSS_TOLERANCE = 1e-4
LATER_LOSS_TOLERANCE = 0.1


def baseline(graph, result):
    """Trains the unrewritten graph, twice: with pinned nodes and without. That must make no
    difference, or comparing bits would prove nothing."""
    try:
        pinned = train.train(graph, graph.bytes)
        plain = train.train(graph, graph.bytes, pin=False, variables=pinned.variables)
    except train.TrainingFailed as error:
        result.problem(error.stage if error.stage == "import" else "losses", str(error))
        return None
    result.problems_from("losses", different_losses(pinned.losses, plain.losses,
                                                    "pinned to devices", "not pinned"))
    result.problems_from("weights", different_variables(pinned.variables, plain.variables))
    compare_with_recorded(graph, pinned.losses, result)
    result.notes.append("%d variables" % len(pinned.variables))
    return Baseline(pinned) if not result.problems else None


def compare_with_recorded(graph, losses, result):
    """The recorded losses are exact on the processor they were recorded on. TensorFlow's matrix
    kernels choose instructions and block sizes by the processor, so elsewhere the last bits may
    differ: then a rewritten graph is compared with the result of the unrewritten one here."""
    recorded = {name: [float(v).hex() for v in values] for name, values in graph.recorded.items()}
    if losses == recorded:
        result.notes.append("losses as recorded, bit for bit")
        return
    result.problems_from("recorded", far_losses(losses, recorded, "computed", "recorded"), shown=20)
    if "recorded" not in result.failed_checks():
        result.notes.append("losses near the recorded ones, not equal: another processor; cases "
                            "are compared bit for bit with this run")


# --- comparing ------------------------------------------------------------------------------------

def different_losses(ours, expected, our_name="rewritten", expected_name="unrewritten"):
    for name in sorted(set(ours) | set(expected)):
        if ours.get(name) != expected.get(name):
            yield "%s: %s %s, %s %s" % (name, our_name, _floats(ours.get(name)),
                                        expected_name, _floats(expected.get(name)))


def _floats(bits):
    return [float.fromhex(b) for b in bits] if bits is not None else "none"


def far_losses(ours, expected, our_name, expected_name):
    """Losses that differ by more than rounding, multiplied by training, explains."""
    for name in sorted(expected):
        our, their = _floats(ours.get(name, [])), _floats(expected[name])
        if len(our) != len(their):
            yield "%s: %d losses %s, %d %s" % (name, len(their), expected_name, len(our), our_name)
            continue
        for step, (mine, other) in enumerate(zip(our, their)):
            allowed = FIRST_LOSS_TOLERANCE if step == 0 else LATER_LOSS_TOLERANCE
            if not abs(mine - other) <= allowed * abs(other):
                yield "%s, step %d: %r %s, %r %s" % (name, step, other, expected_name, mine,
                                                     our_name)


def different_variables(ours, expected):
    for name in sorted(expected):
        if name not in ours:
            yield "variable %s cannot be read any more" % name
        elif ours[name] != expected[name]:
            yield "variable %s has another value after the last step" % name


def swaps_of(report):
    return report.get("swaps", [])


def clone_count(report):
    return int(report.get("recomputation", {}).get("node_count", 0))


def triggers_of_clones(report):
    triggers = sum(int(edges["count"]) for edges in report.get("added_control_edges", [])
                   if edges["kind"] == "EDGE_KIND_TRIGGER")
    return triggers - sum(len(swap_in.get("triggers", [])) for _, swap_in in swap_ins_of(report))


def edges_between_originals(report):
    """Control edges added between original nodes."""
    return sum(int(edges["count"]) for edges in report.get("added_control_edges", [])
               if edges["kind"] in ("EDGE_KIND_SERIALIZATION", "EDGE_KIND_ORDER"))


def swap_ins_of(report):
    return [(swap, swap_in) for swap in swaps_of(report) for swap_in in swap.get("swap_ins", [])]


def swap_node_names(report):
    return [s["swap_out"] for s in swaps_of(report)] + [i["name"] for _, i in swap_ins_of(report)]


# --- plan and report --------------------------------------------------------------------------------

def check_plan(report, expected, result):
    """`expected` is a cases.Expected."""
    tensors, swap_ins = len(swaps_of(report)), len(swap_ins_of(report))
    result.notes.append("%d tensors, %d swap-ins" % (tensors, swap_ins))
    if expected.tensors is not None and tensors != expected.tensors:
        result.problem("plan", "%d tensors are swapped, %d expected (%s)" %
                       (tensors, expected.tensors, expected.reason))
    if expected.swap_ins is not None and swap_ins != expected.swap_ins:
        result.problem("plan", "%d swap-ins, %d expected (%s)" %
                       (swap_ins, expected.swap_ins, expected.reason))
    if expected.at_least is not None and tensors < expected.at_least:
        result.problem("plan", "%d tensors are swapped, at least %d expected (%s)" %
                       (tensors, expected.at_least, expected.reason))
    if expected.at_most is not None and tensors > expected.at_most:
        result.problem("plan", "%d tensors are swapped, at most %d asked for" %
                       (tensors, expected.at_most))
    for scope in expected.scopes_left_alone:
        result.problems_from("plan", (
            "%s is swapped, though %s is excluded" % (swap["tensor"], scope)
            for swap in swaps_of(report)
            if (names.node(swap["tensor"]) + "/").startswith(scope.rstrip("/") + "/")))
    outcome = report.get("outcome")
    edited = tensors or edges_between_originals(report) or clone_count(report)
    right = "OUTCOME_REWRITTEN" if edited else "OUTCOME_NOTHING_TO_DO"
    if outcome != right:
        result.problem("plan", "the outcome is %s with %d swaps" % (outcome, tensors))


def check_report(before, after, report, result):
    """Reads the two GraphDefs: the file matches the report, and nothing else changed."""
    result.problems_from("report", _report_problems(before, after, report))


def _report_problems(before, after, report):
    old = {n.name: n for n in before.node}
    new = {n.name: n for n in after.node}
    if len(new) != len(after.node):
        yield "two nodes have one name"
    rewired = {}  # (consumer, position): swap-in
    waits = {}  # original node: swap-outs and swap-ins that it waits for
    planned = set()
    for swap in swaps_of(report):
        planned.add(swap["swap_out"])
        for waiting in swap.get("deadline_nodes", []):
            waits.setdefault(waiting, set()).add(swap["swap_out"])
        yield from _swap_node_problems(new, swap["swap_out"], swap["tensor"], [])
        if not swap.get("swap_ins"):
            yield "%s never comes back" % swap["tensor"]
        for swap_in in swap.get("swap_ins", []):
            planned.add(swap_in["name"])
            for waiting in swap_in.get("pace_nodes", []):
                waits.setdefault(waiting, set()).add(swap_in["name"])
            yield from _swap_node_problems(new, swap_in["name"], swap["swap_out"] + ":0",
                                           swap_in.get("triggers", []))
            if not swap_in.get("consumers"):
                yield "%s serves nobody" % swap_in["name"]
            for consumer in swap_in.get("consumers", []):
                position = (consumer["node"], int(consumer.get("input_index", 0)))
                rewired[position] = (swap_in["name"], swap["tensor"])
    clones, between_originals = _clones(old, new), 0
    for name in sorted(set(new) - set(old) - set(clones) - planned):
        yield "node %s is new and not in the report" % name
    if len(clones) != clone_count(report):
        yield "%d nodes run again, %d in the report" % (len(clones), clone_count(report))
    # An order that clones are part of is counted with that of the originals; triggers are not.
    between_originals -= triggers_of_clones(report) if clones else 0
    for name, originals in sorted(clones.items()):
        more = set(names.control_inputs(new[name])) - set(names.control_inputs(old[originals[0]]))
        between_originals += len(more & (set(old) | set(clones)))
        found = [list(_node_problems(old[one], new[name], rewired, clones)) for one in originals]
        yield from min(found, key=len)
    for name in sorted(planned & set(old)):
        yield "node %s was there before" % name
    # An update of a variable waits for clones that read it, which is counted with the originals.
    originals = set(old) | set(clones)
    for name, node in old.items():
        if name not in new:
            yield "node %s is gone" % name
            continue
        yield from _node_problems(node, new[name], rewired, clones)
        added = set(names.control_inputs(new[name])) - set(names.control_inputs(node))
        if not waits.get(name, set()) <= added:
            yield "%s does not wait for %s" % (name, sorted(waits[name] - added))
        between_originals += len(added & originals)
        unsaid = added - originals - waits.get(name, set())
        if unsaid:
            yield "%s waits for %s, which the report does not say" % (name, sorted(unsaid))
    if between_originals != edges_between_originals(report):
        yield "%d control edges between original nodes are new, %d in the report" % (
            between_originals, edges_between_originals(report))
    for name in sorted(set(waits) - set(old) - set(clones)):
        yield "%s is to wait and does not exist" % name
    rewritten = list(before.node) + [new[name] for name in clones]
    for node, position in sorted(set(rewired) - {(n.name, i) for n in rewritten
                                                 for i in range(len(n.input))}):
        yield "input %d of %s does not exist" % (position, node)
    if before.library != after.library or before.versions != after.versions:
        yield "the functions or the versions changed"


def _swap_node_problems(new, name, source, triggers):
    if name not in new:
        yield "swap node %s is not in the graph" % name
        return
    node = new[name]
    if node.op != "Identity":
        yield "swap node %s is a %s" % (name, node.op)
    if not names.is_cpu(node.device):
        yield "swap node %s is on %r" % (name, node.device)
    if names.data_inputs(node) != [names.tensor(source)]:
        yield "swap node %s reads %s, not %s" % (name, names.data_inputs(node), source)
    if sorted(names.control_inputs(node)) != sorted(triggers):
        yield "swap node %s waits for %s, not for %s" % (
            name, names.control_inputs(node) or "nothing", triggers or "nothing")


def _clones(old, new):
    """{clone: originals that it may recompute, by its name}."""
    named = {}
    for name in old:
        named.setdefault(CLONE + name.replace("/", "_"), []).append(name)
    found = {}
    for name in set(new) - set(old):
        # A number follows where several clones, or an original's name, would have one name.
        originals = named.get(name, []) + named.get(re.sub(r"_\d+$", "", name), [])
        if originals:
            found[name] = originals
    return found


def _node_problems(old, new, rewired, clones):
    """How the node differs, except as the report says; `new` is the node, or its clone."""
    if (old.op, old.device) != (new.op, new.device):
        yield "node %s was %s on %r, is %s on %r" % (new.name, old.op, old.device, new.op,
                                                     new.device)
    if {k: v for k, v in new.attr.items() if k != UNDO} != dict(old.attr):
        yield "the attributes of %s changed" % new.name

    def same(ours, tensor):
        (node, _, port), (original, _, its) = ours.rpartition(":"), tensor.rpartition(":")
        return ours == tensor or original in clones.get(node, ()) and port == its

    before, after = names.data_inputs(old), names.data_inputs(new)
    expected = list(before)
    for position, tensor in enumerate(before):
        if (new.name, position) in rewired:
            swap_in, swapped = rewired[(new.name, position)]
            if not same(swapped, tensor):
                yield "input %d of %s read %s, not %s" % (position, new.name, tensor, swapped)
            expected[position] = swap_in + ":0"
        elif position < len(after) and same(after[position], tensor):
            expected[position] = after[position]
    if after != expected:
        yield "%s reads %s, not %s" % (new.name, after, expected)
    if not set(names.control_inputs(old)) <= set(names.control_inputs(new)):
        yield "%s waits for less than before" % new.name


def check_bytes(graph_bytes, rewritten, report, rewriter, strategy, options, result):
    """The promises about bytes: deterministic, idempotent, reversible."""
    try:
        if rewriter.rewrite(graph_bytes, strategy, options)[0] != rewritten:
            result.problem("deterministic", "a second run gave other bytes")
    except rewrite.RewriteFailed as error:
        result.problem("deterministic", str(error))
    try:
        again, second = rewriter.rewrite(rewritten, strategy, options)
        if again != rewritten:
            result.problem("idempotent", "rewriting the rewritten file changed it (%d bytes, then "
                           "%d)" % (len(rewritten), len(again)))
        if swaps_of(report) and second.get("outcome") == "OUTCOME_REWRITTEN":
            result.problem("idempotent", "the second report claims a rewrite")
    except rewrite.RewriteFailed as error:
        result.problem("idempotent", str(error))
    try:
        stripped = rewriter.strip(rewritten)
        if stripped != graph_bytes:
            result.problem("strip", "%d bytes, which are not the %d of the input" %
                           (len(stripped), len(graph_bytes)))
    except rewrite.RewriteFailed as error:
        result.problem("strip", str(error))


# --- edited in place -------------------------------------------------------------------------------

def different_nodes(live, file):
    """Where two GraphDefs are not one graph. The order of control inputs is no part of it, nor are
    the shapes that the file carries."""
    ours = {n.name: n for n in live.node}
    theirs = {n.name: n for n in file.node}
    for name in sorted(set(ours) ^ set(theirs)):
        yield "node %s is only in the %s" % (name, "live graph" if name in ours else "file")
    for name in sorted(set(ours) & set(theirs)):
        for what, of in _NODE_PARTS.items():
            if of(ours[name]) != of(theirs[name]):
                yield "%s of %s: %s in the live graph, %s in the file" % (
                    what, name, of(ours[name]), of(theirs[name]))
        live_attr, file_attr = dict(ours[name].attr), dict(theirs[name].attr)
        others = sorted(key for key in set(live_attr) | set(file_attr)
                        if key != "_output_shapes" and live_attr.get(key) != file_attr.get(key))
        if others:
            yield "attributes of %s differ: %s" % (name, ", ".join(others))


_NODE_PARTS = {
    "op": lambda node: node.op,
    "device": lambda node: node.device,
    "inputs": names.data_inputs,
    "control inputs": lambda node: sorted(names.control_inputs(node)),
}


def check_edit_again(tf_graph, after, editor, case, options, result):
    """Editing the edited graph changes nothing, and says so."""
    try:
        second = editor.edit(tf_graph, case.strategy, options)
    except rewrite.RewriteFailed as error:
        result.problem("idempotent", str(error))
        return
    result.problems_from("idempotent", different_nodes(tf_graph.as_graph_def(), after))
    if second.get("outcome") == "OUTCOME_REWRITTEN":
        result.problem("idempotent", "the second report claims a rewrite")


def check_strip_of_live(before, after, rewriter, result):
    """The record of what to undo is in the live graph, too."""
    try:
        stripped = train.parse(rewriter.strip(after.SerializeToString(deterministic=True)))
    except rewrite.RewriteFailed as error:
        result.problem("strip", str(error))
        return
    if stripped != before:
        result.problem("strip", "the live graph, saved and stripped, is not the graph before")


# --- crossings --------------------------------------------------------------------------------------

def ancestors(graph_def, graph):
    """The nodes that a step runs: those that its fetches need, up to the feeds."""
    by_name = {n.name: n for n in graph_def.node}
    fed = {names.tensor(spec["name"]) for spec in graph.feed_spec}
    waiting = [names.node(f) for call in graph.step_calls for f in call]
    seen = set(waiting)
    while waiting:
        node = by_name[waiting.pop()]
        needed = [names.node(t) for t in names.data_inputs(node) if t not in fed]
        for name in needed + names.control_inputs(node):
            if name in by_name and name not in seen:
                seen.add(name)
                waiting.append(name)
    return seen


class _Flow:
    """The graphs given to the executors in one step, searched by the checks below."""

    def __init__(self, after, trained, grappler):
        self.own_names = {n.name for n in after.node}  # those of the file
        self.moved = set()  # nodes on the host for the sake of a swap-in
        self.found = set().union(*[crossings.find(p) for p in trained.partitions])
        self.placed = {}
        for partitions in trained.partitions:
            self.placed.update(crossings.nodes(partitions))
        self.grappler = grappler

    def where(self, node):
        return self.placed[node].device if node in self.placed else "no device"

    def is_gone(self, node):
        """Whether Grappler removed it, or left only its control edges, because others wait for it."""
        return node not in self.placed or self.placed[node].op == "NoOp"

    def leaving(self, tensor, swap_out):
        """The way to the host, where the swap-out reads it. An If's result has a name under the
        If's when that is replaced; Grappler merges equal nodes, so with it the name may be any."""
        producer = names.node(tensor)
        return {c for c in self.found if c.consumer == swap_out and c.source != HOST
                and c.target == HOST and (
                    c.tensor == names.tensor(tensor) or self.grappler
                    or producer not in self.placed and c.tensor.startswith(producer + "/"))}

    def coming(self, swap_in, consumer):
        """The way back to one consumer."""
        direct = {c for c in self.found if c.tensor == swap_in + ":0" and c.source == HOST
                  and c.target != HOST and self._is(c.consumer, consumer)}
        if direct and consumer in self.placed:
            return direct
        return direct | self._behind_switch(swap_in, consumer)

    def _is(self, reader, consumer):
        """Whether a reader is the consumer, or came out of it: TensorFlow replaces an If by nodes
        named under it, and Grappler an op by another one."""
        if consumer in self.placed:
            return reader == consumer
        return self.grappler or reader.startswith(consumer + "/")

    def _behind_switch(self, swap_in, consumer):
        """TensorFlow puts a Switch on the device of its data, regardless of the requested device,
        and the Identities that it makes of an If's inputs too. So if those read a swap-in, they run
        on the host, and their outputs come back behind them."""
        moved = set()
        if consumer in self.placed:
            if self.placed[consumer].op != "Switch" or self.placed[consumer].device != HOST:
                return set()
            moved.add(consumer)
        outputs = {"%s:%d" % (name, port) for name in moved for port in (0, 1)}
        outputs = outputs or {swap_in + ":0"}
        more = True
        while more:
            more = {name for name, node in self.placed.items()
                    if node.device == HOST and name not in moved
                    and node.inputs and node.inputs[0] in outputs
                    and (node.op == "Switch"
                         or node.op == "Identity" and name not in self.own_names)}
            moved |= more
            outputs |= {"%s:%d" % (name, port) for name in more for port in (0, 1)}
        self.moved |= moved
        return {c for c in self.found if c.source == HOST and names.node(c.tensor) in moved}

    def is_moved_switch(self, node, swap_ins):
        """Whether the node is a Switch that is on the host since it reads a swap-in."""
        placed = self.placed.get(node)
        return (placed is not None and placed.op == "Switch" and placed.device == HOST
                and names.node(placed.inputs[0]) in swap_ins)

    def was_on_host(self, node):
        """Whether the node and all that it reads are on the host, like the reads of a parameter
        server's variables: a tensor copied late from there need not leave a device."""
        placed = self.placed.get(node)
        return (placed is not None and placed.device == HOST and bool(placed.inputs) and
                all(self.where(names.node(tensor)) == HOST for tensor in placed.inputs))

    def to_moved(self):
        """A Switch's other input: its predicate goes to the host with it."""
        return {c for c in self.found if c.target == HOST and c.consumer in self.moved}


def check_crossings(graph, after, report, trained, expected_others, result):
    """`expected_others`: crossings of the unrewritten graph; None: Grappler was on, so consumers
    may be gone or have other names, and other crossings are up to Grappler."""
    flow = _Flow(after, trained, grappler=expected_others is None)
    running = ancestors(after, graph)
    swap_ins = {swap_in["name"] for _, swap_in in swap_ins_of(report)}
    explained, switched, stayed, gone, there = set(), 0, 0, 0, 0
    idle = [0, 0]  # swap-outs and swap-ins that the step does not run
    problems = []
    for swap in swaps_of(report):
        out = swap["swap_out"]
        if out not in running:
            idle[0] += 1
            idle[1] += len(swap.get("swap_ins", []))
            # Nodes that serve a running consumer must run.
            problems += ["%s serves %s, which runs, but does not run itself" % (i["name"], c["node"])
                         for i in swap.get("swap_ins", []) for c in i.get("consumers", [])
                         if c["node"] in running]
            continue
        leaving = flow.leaving(swap["tensor"], out)
        producer = names.node(swap["tensor"])
        if not leaving and flow.is_moved_switch(producer, swap_ins):
            stayed += 1
        elif not leaving and flow.grappler and flow.is_gone(producer):
            gone += 1
        elif not leaving and flow.was_on_host(producer):
            there += 1
        elif not leaving:
            problems.append("%s does not leave the device: %s is on %s" %
                            (swap["tensor"], out, flow.where(out)))
        explained |= leaving
        for swap_in in swap.get("swap_ins", []):
            consumers = {c["node"] for c in swap_in.get("consumers", [])} & running
            if not consumers:
                idle[1] += 1
            through = False
            for consumer in sorted(consumers):
                coming = flow.coming(swap_in["name"], consumer)
                if coming:
                    explained |= coming
                    through |= any(c.tensor != swap_in["name"] + ":0" for c in coming)
                elif flow.grappler and flow.is_gone(consumer):
                    gone += 1
                else:
                    problems.append("%s does not bring %s back to %s: it is on %s, %s on %s" % (
                        swap_in["name"], swap["tensor"], consumer, flow.where(swap_in["name"]),
                        consumer, flow.where(consumer)))
            switched += through
    if expected_others is not None:
        explained |= flow.to_moved()
        others = {_unnumbered(other) for other in expected_others}
        clones = _clones({n.name for n in after.node if not n.name.startswith(CLONE)},
                         {n.name for n in after.node})
        problems += ["not planned, and not in the unrewritten graph: %s" % str(c)
                     for c in sorted(flow.found - explained)
                     # A clone has its original's inputs.
                     if not any(_unnumbered(c._replace(consumer=reader)) in others
                                for reader in clones.get(c.consumer, [c.consumer]))]
    result.problems_from("crossings", problems)
    if any(idle):
        result.notes.append("%d swap-outs and %d swap-ins are no part of a step" % tuple(idle))
    if there:
        result.notes.append("%d tensors are copied late, which were on the host already" % there)
    if gone:
        result.notes.append("Grappler removed %d consumers or producers" % gone)
    if switched:
        result.notes.append("%d swap-ins come back behind a Switch, which TensorFlow puts on the "
                            "host" % switched)
    if stayed:
        result.notes.append("%d swapped tensors are outputs of such a Switch, and on the host "
                            "already" % stayed)
    result.notes.append("%d tensors cross out, %d back" % (
        len({c.tensor for c in explained if c.target == HOST}),
        len({c.tensor for c in explained if c.source == HOST})))


def _unnumbered(crossing):
    """TensorFlow lowers the unrewritten graph's If and While itself, and numbers the new nodes
    differently."""
    return tuple(re.sub(r"/_\d+", "/_N", part) for part in crossing)


# --- one case ---------------------------------------------------------------------------------------

def check_case(graph, case, rewriter, base, result):
    """All checks of one case. `base` is None if the graph is not trained."""
    original = case.input_bytes(graph)
    try:
        options = case.options_for(graph, rewriter, original)
        rewritten, report = rewriter.rewrite(original, case.strategy, options)
    except rewrite.RewriteFailed as error:
        result.problem("rewrite", str(error))
        return
    before = train.parse(original)
    try:
        if report.get("outcome") == "OUTCOME_REWRITTEN" and int(
                report.get("inlining", {}).get("inlined_call_count", 0)):
            # inlining.py shows that these are TensorFlow's own.
            before = train.parse(rewriter.inlined(original))
            for node in before.node:
                node.attr.pop(UNDO, None)
        after = train.parse(rewritten)
    except Exception as error:  # protobuf's own DecodeError
        result.problem("import", "the rewritten bytes are no GraphDef: %s" % error)
        return
    check_plan(report, case.expected_for(graph), result)
    check_report(before, after, report, result)
    check_bytes(original, rewritten, report, rewriter, case.strategy, options, result)
    if base is None:
        return
    train_and_check(graph, case, functools.partial(train.train, graph, rewritten), after, report,
                    base, result)
    if case.check_sizes:
        check_sizes(graph, original, report, result)


def check_live_case(graph, case, rewriter, editor, base, result):
    """The same for a graph that `editor` edits in place, as live.Package does."""
    original = case.input_bytes(graph)
    tf_graph = train.imported(train.parse(original))
    before = tf_graph.as_graph_def()
    # The package's request: with the shapes that TensorFlow knows.
    sent = tf_graph.as_graph_def(add_shapes=True).SerializeToString(deterministic=True)
    try:
        options = case.options_for(graph, rewriter, sent)
        # A live graph keeps its calls.
        rewritten = train.parse(rewriter.rewrite(sent, case.strategy,
                                                 dict(options, inline_calls="never"))[0])
        report = editor.edit(tf_graph, case.strategy, options)
    except rewrite.RewriteFailed as error:
        result.problem("rewrite", str(error))
        return
    after = tf_graph.as_graph_def()
    check_plan(report, case.expected_for(graph), result)
    check_report(before, after, report, result)
    result.problems_from("live", different_nodes(after, rewritten))
    check_edit_again(tf_graph, after, editor, case, options, result)
    check_strip_of_live(before, after, rewriter, result)
    train_and_check(graph, case, functools.partial(train.train_live, graph, tf_graph), after,
                    report, base, result)
    if case.check_sizes:
        check_sizes(graph, original, report, result)


def train_and_check(graph, case, run, after, report, base, result):
    """`run` trains: train.train or train.train_live, but for how."""
    wanted = "grappler" if case.grappler else "losses"
    try:
        trained = run(grappler=case.grappler, variables=base.trained.variables)
    except train.TrainingFailed as error:
        result.problem("import" if error.stage == "import" else wanted, str(error))
        return
    if case.grappler and _differ(trained, base.trained):
        check_with_grappler(graph, base, trained, result)
    else:
        result.problems_from(wanted, different_losses(trained.losses, base.trained.losses))
        result.problems_from("weights",
                             different_variables(trained.variables, base.trained.variables))
    if case.grappler:
        check_survival(graph, after, report, trained, result)
    check_crossings(graph, after, report, trained,
                    None if case.grappler else base.crossings, result)


def check_with_grappler(graph, base, trained, result):
    """Other bits than without Grappler: is it Grappler that changes them? The unrewritten graph
    shows it. It may even change others in the rewritten graph, if it cannot fold or fuse across a
    swap; then the losses must be near."""
    if base.with_grappler is None:
        base.with_grappler = train.train(graph, graph.bytes, grappler=True,
                                         variables=base.trained.variables)
    expected = base.with_grappler
    if not _differ(expected, base.trained):
        expected = base.trained
    elif _differ(trained, expected):
        result.notes.append("Grappler changes the bits of the unrewritten graph, and others of "
                            "this: losses near, not equal")
        result.problems_from("grappler", far_losses(trained.losses, expected.losses, "rewritten",
                                                    "unrewritten"))
        return
    else:
        result.notes.append("Grappler changes the bits of the unrewritten graph too: equal to those")
    result.problems_from("grappler", different_losses(trained.losses, expected.losses))
    result.problems_from("grappler", different_variables(trained.variables, expected.variables))


def _differ(one, other):
    return (one.losses, one.variables) != (other.losses, other.variables)


def check_survival(graph, after, report, trained, result):
    """Every swap node of a step is still there when Grappler is done."""
    present = set()
    for partitions in trained.partitions:
        present |= set(crossings.nodes(partitions))
    wanted = set(swap_node_names(report)) & ancestors(after, graph)
    result.problems_from("grappler", ("swap node %s did not survive" % name
                                      for name in sorted(wanted - present)))
    result.notes.append("%d of %d swap nodes survive Grappler" % (len(wanted & present),
                                                                  len(wanted)))


def check_sizes(graph, original, report, result):
    """The bytes in the report, against tensors that were really computed. Of a graph that carries
    shapes some must be known."""
    claimed = {s["tensor"]: int(s["size_bytes"]) for s in swaps_of(report) if "size_bytes" in s}
    # cuDNN's reserve space is empty, and the kernel for CPUs puts out a scalar in its place.
    claimed = {tensor: size for tensor, size in claimed.items()
               if not (size == 0 and tensor.endswith("FusedBatchNormV3:5"))}
    if swaps_of(report) and not claimed and original == graph.bytes_with_shapes:
        result.problem("sizes", "no size is known, though shapes and batch size are")
    real = train.sizes(graph, original, sorted(claimed))
    result.problems_from("sizes", ("%s has %d bytes, not %d" % (t, real[t], claimed[t])
                                   for t in sorted(real) if real[t] != claimed[t]))
    result.notes.append("%d of %d sizes known, %d measured" % (
        len(claimed), len(swaps_of(report)), len(real)))
