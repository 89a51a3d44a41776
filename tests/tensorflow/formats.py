#!/usr/bin/env python3
"""Rewrites files of every format with the command line `spillway`, and reads them with TensorFlow.

Exit code 0: nothing failed; 1: something failed. One line per case, and at the end
`N passed, N failed`.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2  # noqa: E402

tf1 = tf.compat.v1
tf1.logging.set_verbosity(tf1.logging.ERROR)
SCHEMA = (pathlib.Path(__file__).resolve().parents[2] /
          "client_lib/format/spillway/format/tensorflow_graph.proto")
LAYERS = 6  # Layers of the model: enough for tensors to wait.


def build(training):
    """A graph of dense layers, with or without its training."""
    graph = tf1.Graph()
    with graph.as_default(), tf1.variable_scope("model"):
        x = tf1.placeholder(tf.float32, [None, 8], name="x")
        h = x
        for i in range(LAYERS):
            w = tf1.get_variable("w%d" % i, [8, 8], initializer=tf1.ones_initializer(),
                                 use_resource=False)
            h = tf.nn.relu(tf.matmul(h, w * 0.1), name="layer%d" % i)
        y = tf.reduce_mean(h, name="y")
        if training:
            tf1.train.GradientDescentOptimizer(0.1).minimize(y, name="train")
    return graph


def save_model(folder):
    builder = tf1.saved_model.Builder(str(folder))
    for tags in (["train"], ["serve"]):
        graph = build(tags == ["train"])
        with tf1.Session(graph=graph) as session:
            for i in range(LAYERS):
                session.run(graph.get_operation_by_name("model/w%d/Assign" % i))
            signature = tf1.saved_model.signature_def_utils.predict_signature_def(
                {"x": graph.get_tensor_by_name("model/x:0")},
                {"y": graph.get_tensor_by_name("model/y:0")})
            with graph.as_default():
                if tags == ["train"]:
                    builder.add_meta_graph_and_variables(session, tags, {"predict": signature})
                else:
                    builder.add_meta_graph(tags, {"predict": signature})
    builder.save()


def swaps(graph_def):
    return sum(n.name.startswith("lms/swap") for n in graph_def.node)


def one_step(graph, restore=None):
    """The loss before and after one step of training."""
    with tf1.Session(graph=graph) as session:
        if restore:
            restore(session)
        else:
            for i in range(LAYERS):
                session.run(graph.get_operation_by_name("model/w%d/Assign" % i))
        feed = {"model/x:0": [[1.0] * 8] * 4}
        before = session.run("model/y:0", feed)
        session.run(graph.get_operation_by_name("model/train"), feed)
        return before, session.run("model/y:0", feed)


def imported(graph_def):
    graph = tf1.Graph()
    with graph.as_default():
        tf1.import_graph_def(graph_def, name="")
    return graph


class Cases:
    def __init__(self, spillway, folder):
        self.spillway, self.folder = spillway, pathlib.Path(folder)
        self.passed = self.failed = 0
        self.graph = build(True)
        self.losses = one_step(self.graph)
        assert self.losses[0] != self.losses[1]

    def run(self, *arguments):
        subprocess.run([self.spillway, *map(str, arguments), "--quiet"], check=True)

    def case(self, name, function):
        try:
            function()
            self.passed += 1
            print("pass  %s" % name, flush=True)
        except Exception as error:  # In any case, the next case runs.
            self.failed += 1
            print("FAIL  %s: %s: %s" % (name, type(error).__name__, str(error)[:2000]), flush=True)

    def there_and_back(self, path, read, same_bytes):
        """Rewrites and strips; what `read` gives of both, with the graphs taken out, is the same."""
        out, back = self.folder / ("out_" + path.name), self.folder / ("back_" + path.name)
        self.run("rewrite", path, "-o", out, "--strategy", "scope")
        self.run("strip", out, "-o", back)
        before, after, stripped = read(path), read(out), read(back)
        assert stripped == before, "strip gives another message"
        if same_bytes:
            assert back.read_bytes() == path.read_bytes(), "strip gives other bytes"
        return before, after, out

    def graph_def(self, as_text):
        path = self.folder / ("graph.pbtxt" if as_text else "graph.pb")
        tf1.io.write_graph(self.graph.as_graph_def(), str(self.folder), path.name, as_text=as_text)

        def read(file):
            if not as_text:
                return graph_pb2.GraphDef.FromString(file.read_bytes())
            return text_format.Parse(file.read_text(), graph_pb2.GraphDef())
        _, after, _ = self.there_and_back(path, read, not as_text)
        assert swaps(after) > 0
        assert one_step(imported(after)) == self.losses

    def meta_graph(self, as_text):
        path = self.folder / ("meta.pbtxt" if as_text else "meta.pb")
        with self.graph.as_default():
            tf1.train.export_meta_graph(str(path), as_text=as_text, clear_devices=False)

        def read(file):
            if not as_text:
                return meta_graph_pb2.MetaGraphDef.FromString(file.read_bytes())
            return text_format.Parse(file.read_text(), meta_graph_pb2.MetaGraphDef())
        before, after, out = self.there_and_back(path, read, not as_text)
        assert swaps(after.graph_def) > 0
        graph = tf1.Graph()
        with graph.as_default():
            tf1.train.import_meta_graph(str(out))
        assert one_step(graph) == self.losses
        for message in (before, after):
            message.ClearField("graph_def")
        assert before == after, "something beside the graph has changed"

    def saved_model(self, as_text):
        folder = self.folder / ("model_text" if as_text else "model")
        save_model(folder)
        path = folder / "saved_model.pb"
        if as_text:
            message = saved_model_pb2.SavedModel.FromString(path.read_bytes())
            path.unlink()
            path = folder / "saved_model.pbtxt"
            path.write_text(text_format.MessageToString(message))

        def read(file):
            if not as_text:
                return saved_model_pb2.SavedModel.FromString(file.read_bytes())
            return text_format.Parse(file.read_text(), saved_model_pb2.SavedModel())
        before, after, out = self.there_and_back(path, read, not as_text)
        # The folder stands for its file.
        self.run("rewrite", folder, "-o", self.folder / "by_folder", "--strategy", "scope")
        assert (self.folder / "by_folder").read_bytes() == out.read_bytes()
        assert [swaps(m.graph_def) > 0 for m in after.meta_graphs] == [True, False]
        assert after.meta_graphs[1] == before.meta_graphs[1]
        # The model with the rewritten file in place of its own.
        path.write_bytes(out.read_bytes())

        graph = tf1.Graph()
        with graph.as_default():
            assert one_step(graph, lambda session: tf1.saved_model.load(
                session, ["train"], str(folder))) == self.losses
        graph = tf1.Graph()
        with tf1.Session(graph=graph) as session:
            tf1.saved_model.load(session, ["serve"], str(folder))
            assert session.run("model/y:0", {"model/x:0": [[1.0] * 8] * 4}) == self.losses[0]
        for message in (before, after):
            for meta_graph in message.meta_graphs:
                meta_graph.ClearField("graph_def")
        assert before == after, "something beside the graphs has changed"

    def anonymized(self, path):
        out = self.folder / "anonymous.pb"
        self.run("anonymize", path, "-o", out)
        after = graph_pb2.GraphDef.FromString(out.read_bytes())
        before = graph_pb2.GraphDef.FromString(path.read_bytes())
        assert [n.op for n in after.node] == [n.op for n in before.node]
        shapes = []
        for graph_def in (before, after):
            graph = imported(graph_def)
            shapes.append([[str(o.shape) for o in graph.get_operation_by_name(n.name).outputs]
                           for n in graph_def.node])
        assert shapes[0] == shapes[1], "TensorFlow infers other shapes"

    def schema(self):
        """Our schema is TensorFlow's, but for bytes in place of strings and entries of maps."""
        with tempfile.TemporaryDirectory() as out:
            subprocess.run(["protoc", "-I", SCHEMA.parent, "--descriptor_set_out", out + "/set",
                            SCHEMA.name], check=True)
            from google.protobuf import descriptor_pb2, descriptor_pool
            files = descriptor_pb2.FileDescriptorSet.FromString(
                pathlib.Path(out + "/set").read_bytes())
        pool = descriptor_pool.DescriptorPool()
        pool.Add(files.file[0])
        ours = pool.FindMessageTypeByName("spillway.format.GraphDef")
        seen = set()

        def name_of(descriptor):
            return re.sub(r"^(tensorflow|spillway\.format)\.", "", descriptor.full_name)

        def compare(a, b):
            assert name_of(a) == name_of(b), "%s is %s" % (a.full_name, b.full_name)
            if a.full_name in seen:
                return
            seen.add(a.full_name)
            assert sorted(a.fields_by_name) == sorted(b.fields_by_name), a.full_name
            for name, field in a.fields_by_name.items():
                other = b.fields_by_name[name]
                bytes_for_string = (field.type, other.type) == (field.TYPE_BYTES, field.TYPE_STRING)
                assert (field.number, field.label) == (other.number, other.label) and (
                    field.type == other.type or bytes_for_string), "%s.%s" % (a.full_name, name)
                if field.message_type:
                    compare(field.message_type, other.message_type)
                if field.enum_type:
                    values = [{v.name: v.number for v in e.values}
                              for e in (field.enum_type, other.enum_type)]
                    assert values[0] == values[1], field.enum_type.full_name
        compare(ours, graph_pb2.GraphDef.DESCRIPTOR)
        assert len(seen) > 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spillway", metavar="PROGRAM", required=True)
    options = parser.parse_args()
    graphs = pathlib.Path(__file__).resolve().parents[1] / "graphs"
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(str(pathlib.Path(options.spillway).resolve()), folder)
        cases.case("schema", cases.schema)
        for kind in ("graph_def", "meta_graph", "saved_model"):
            for as_text in (False, True):
                cases.case("%s/%s" % (kind, "text" if as_text else "binary"),
                           lambda: getattr(cases, kind)(as_text))
        for name in ("mnist_deep", "cond_v2", "lstm_while_v2", "bert_tiny", "resnet26_2tower_b2"):
            path = cases.folder / (name + ".pb")
            found = sorted((graphs / name).glob("graph*.pb*"))[0]
            data = found.read_bytes()
            if found.suffix == ".gz":
                import gzip
                data = gzip.decompress(data)
            path.write_bytes(data)
            cases.case("anonymized/" + name, lambda: cases.anonymized(path))
    print("%d passed, %d failed" % (cases.passed, cases.failed))
    return 1 if cases.failed else 0


if __name__ == "__main__":
    sys.exit(main())
