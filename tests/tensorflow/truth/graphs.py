"""Training graphs with their recorded answers.

A graph is a folder with graph.pb or graph.pb.gz (a GraphDef), meta.json (fetches, feeds, optimizer
scopes) and losses.json (the losses of some steps, or why they are missing).
"""
import gzip
import json
import pathlib


class Graph:
    """One folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.name
        self.meta = json.loads((self.folder / "meta.json").read_text())
        answers = {}
        if (self.folder / "losses.json").exists():
            answers = json.loads((self.folder / "losses.json").read_text())
        self.not_trained = None  # why the graph has no recorded losses
        if not answers.get("losses"):
            self.not_trained = answers.get("reason", "it has no recorded losses")
        self.steps = answers.get("steps", 0)
        self.recorded = answers.get("losses_by_tensor", {})
        if answers.get("losses") and not self.recorded:
            self.recorded = {self.meta["fetches"]["loss"]: answers["losses"]}

    def __repr__(self):
        return "Graph(%s)" % self.folder

    @property
    def bytes(self):
        """The serialized GraphDef."""
        path = self.folder / "graph.pb"
        if path.exists():
            return path.read_bytes()
        return gzip.decompress((self.folder / "graph.pb.gz").read_bytes())

    @property
    def bytes_with_shapes(self):
        """The same with `_output_shapes` attributes; None where the folder has none."""
        path = self.folder / "graph_shapes.pb"
        return path.read_bytes() if path.exists() else None

    @property
    def optimizer_scopes(self):
        return self.meta["optimizer_scopes"]

    @property
    def feed_spec(self):
        return self.meta.get("feed_spec") or []

    @property
    def init_ops(self):
        """The ops to run before training, one session call each."""
        fetches = self.meta["fetches"]
        return [fetches["init_op"]] + list(fetches.get("extra_init_ops", []))

    @property
    def step_calls(self):
        """The (train_op, loss) pairs of one step, one session call each."""
        fetches = self.meta["fetches"]
        sequence = fetches.get("run_sequence") or self.meta.get("run_sequence")
        return [tuple(pair) for pair in sequence or [(fetches["train_op"], fetches["loss"])]]


def find(roots):
    """{name: Graph} of the folders in the given ones. An earlier root wins."""
    found = {}
    for root in roots:
        for path in sorted(pathlib.Path(root).iterdir()):
            graph_there = (path / "graph.pb").exists() or (path / "graph.pb.gz").exists()
            if graph_there and (path / "meta.json").exists():
                found.setdefault(path.name, Graph(path))
    return found
