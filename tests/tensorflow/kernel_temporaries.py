#!/usr/bin/env python3
"""Compares kernels' temporaries in `spillway simulate` with those in TensorFlow's source.

The functions below repeat the allocations that the kernels named beside them make on a GPU, one by
one; live bytes are counted here, not worked out. Cases are single ops that TensorFlow itself has
given shapes, and whole graphs of tests/graphs. Exit code 0: nothing failed; 1: something failed.
One line per failure, and at the end `N passed, N failed`.
"""
import argparse
import gzip
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
raw = tf.raw_ops
GRAPHS = pathlib.Path(__file__).resolve().parents[1] / "graphs"
WHOLE = ("resnet50_tf1", "resnet50_tf1_b4", "tfcnn_resnet50_b200", "tfcnn_resnet50_nhwc_b2",
         "tfcnn_googlenet")  # Of known shapes.
MOST = 5  # That a report names.
BYTES = {tf.float32: 4, tf.float16: 2, tf.bfloat16: 2, tf.float64: 8}


class Machine:
    """A GPU, and the choice of TensorFlow that ComputeInNhwcEnabled (conv_ops_gpu.cc) reads."""

    def __init__(self, capability, tf32=True):
        self.capability, self.tf32 = capability, tf32

    def computes_in_nhwc(self, dtype):
        return {tf.float32: self.capability >= 8 and self.tf32, tf.float16: self.capability >= 7,
                tf.bfloat16: self.capability >= 8}.get(dtype, False)

    def flags(self):
        return ["--compute-capability=%s" % self.capability, "--tf32=%s" % str(self.tf32).lower()]


class Memory:
    """A kernel's allocations."""

    def __init__(self):
        self.live, self.most = 0, 0

    def allocate(self, dims, dtype):
        size = math.prod(dims) * BYTES[dtype]
        self.live += size
        self.most = max(self.most, self.live)
        return size

    def free(self, size):
        self.live -= size


class Window:
    """Strides, dilations and paddings of the dimensions of space of one convolution."""

    def __init__(self, op, data, filter_dims, last):
        self.rank = len(data) - 2
        first = 1 if last else 2
        at = range(first, first + self.rank)
        attr = op.node_def.attr
        dilations = list(attr["dilations"].list.i) or [1] * len(data)
        self.stride = [attr["strides"].list.i[i] for i in at]
        self.dilation = [dilations[i] for i in at]
        self.padding = attr["padding"].s.decode()
        self.size = [data[i] for i in at]
        self.filter = list(filter_dims[:self.rank])
        explicit = attr["explicit_paddings"].list.i
        self.pads = [self._pads(k, [explicit[2 * i + j] for j in (0, 1)] if explicit else None)
                     for k, i in enumerate(at)]

    def _pads(self, k, explicit):
        """GetWindowedOutputSizeVerbose in core/framework/kernel_shape_util.cc."""
        if self.padding == "EXPLICIT":
            return explicit
        if self.padding == "VALID":
            return [0, 0]
        window = (self.filter[k] - 1) * self.dilation[k] + 1
        results = -(-self.size[k] // self.stride[k])
        needed = max(0, (results - 1) * self.stride[k] + window - self.size[k])
        return [needed // 2, needed - needed // 2]

    def padded(self):
        return [size + abs(a - b) for size, (a, b) in zip(self.size, self.pads)]

    def uneven(self):
        return any(a != b for a, b in self.pads)

    def point(self):
        return all(f == 1 for f in self.filter) and all(s == 1 for s in self.stride)

    def whole(self):
        return self.filter == self.size and self.padding == "VALID"


def dims_of(tensor):
    return tensor.shape.as_list()


def with_space(dims, space, last):
    return [dims[0]] + space + [dims[-1]] if last else list(dims[:2]) + space


def forward(memory, machine, dtype, last, window, data, filt, result):
    """LaunchConvOpImpl in conv_ops_impl.h."""
    depth = data[-1 if last else 1]
    grouped = filt[-2] != depth
    if last and not grouped and window.point() and set(window.dilation) == {1} \
            and window.padding != "EXPLICIT":
        return
    if last and not grouped and window.whole():
        return
    convert = last and not machine.computes_in_nhwc(dtype)
    padded = None
    dims = data
    if window.uneven():
        dims = with_space(data, window.padded(), last)
        padded = memory.allocate(dims, dtype)
    if convert and depth > 1:
        memory.allocate(dims, dtype)
        if padded:  # `input = transformed_input` drops the last reference.
            memory.free(padded)
    memory.allocate(filt, dtype)
    if convert:
        memory.allocate(result, dtype)


def gradient_is_product(window):
    """Whether cuBLAS multiplies the tensors of a gradient as they are: both gradients ask this."""
    dilates = window.rank == 3 and set(window.dilation) != {1}
    return window.whole() or (window.padding != "EXPLICIT" and window.point() and not dilates)


def input_gradient(memory, machine, dtype, last, window, data, filt, result):
    """LaunchConv2DBackpropInputOp in conv_grad_input_ops.cc, LaunchConvBackpropInputOpImpl in
    conv_grad_ops_3d.cc."""
    grouped = filt[-2] != data[-1 if last else 1]
    if last and not grouped and gradient_is_product(window):
        return
    convert = last and not machine.computes_in_nhwc(dtype)
    memory.allocate(filt, dtype)
    if convert and filt[-1] > 1:
        memory.allocate(result, dtype)
    memory.allocate(with_space(data, window.padded(), last), dtype)  # pre_transformed_in_backprop
    if window.uneven():
        memory.allocate(data, dtype)  # in_backprop_remove_padding


def filter_gradient(memory, machine, dtype, last, window, data, filt, result):
    """LaunchConv2DBackpropFilterOpImpl in conv_grad_filter_ops_launcher.cc,
    LaunchConvBackpropFilterOpImpl in conv_grad_ops_3d.cc."""
    depth = data[-1 if last else 1]
    grouped = filt[-2] != depth
    if last and not grouped and gradient_is_product(window):
        return
    convert = last and not machine.computes_in_nhwc(dtype)
    dims = data
    if window.uneven():
        dims = with_space(data, window.padded(), last)
        memory.allocate(dims, dtype)  # compatible_input, which stays.
    memory.allocate(filt, dtype)
    if convert and filt[-1] > 1:
        memory.allocate(result, dtype)
    if convert and depth > 1:
        memory.allocate(dims, dtype)


def depthwise(kernel):
    """DepthwiseConv2dNativeOp and its gradients: cuDNN's grouped convolutions for half precision."""

    def run(memory, machine, dtype, last, window, data, filt, result):
        depth, times = filt[-2:]
        stride = window.stride[0]
        fits = times == 1 and window.filter[0] == window.filter[1] and window.filter[0] in (1, 3, 5, 7)
        grouped = {forward: not last or stride in (1, 2),
                   input_gradient: stride in (1, 2) if last else stride == 1,
                   filter_gradient: True}[kernel]
        if depth == 1 or (dtype == tf.float16 and fits and grouped):
            reshaped = filt[:2] + [1, depth * times]
            kernel(memory, machine, dtype, last, window, data, reshaped, result)

    return run


def casted(kernel):
    """conv_ops_bfloat16.cc and the like: IsBF16SupportedInOps."""

    def run(memory, machine, dtype, last, window, data, filt, result):
        if dtype == tf.bfloat16 and machine.capability < 8:
            dtype = tf.float32
            for dims in (data, filt, result):
                memory.allocate(dims, dtype)
        kernel(memory, machine, dtype, last, window, data, filt, result)

    return run


# The kernel, and the positions of the input, the filter and the forward result.
CONVOLUTIONS = {
    "Conv2D": (casted(forward), 0, 1, None), "Conv3D": (casted(forward), 0, 1, None),
    "Conv2DBackpropInput": (casted(input_gradient), None, 1, 2),
    "Conv3DBackpropInputV2": (casted(input_gradient), None, 1, 2),
    "Conv2DBackpropFilter": (casted(filter_gradient), 0, None, 2),
    "Conv3DBackpropFilterV2": (casted(filter_gradient), 0, None, 2),
    "DepthwiseConv2dNative": (depthwise(forward), 0, 1, None),
    "DepthwiseConv2dNativeBackpropInput": (depthwise(input_gradient), None, 1, 2),
    "DepthwiseConv2dNativeBackpropFilter": (depthwise(filter_gradient), 0, None, 2),
}


def reduction(memory, op, data, dtype):
    """ReductionHelper::Simplify in reduction_ops_common.cc, ReductionOp::Compute."""
    axes = tf.get_static_value(op.inputs[1])
    if dtype not in BYTES or axes is None:
        return
    reduced = [False] * len(data)
    for axis in axes.reshape(-1):
        reduced[axis] = True
    parts = [r for r, dim in zip(reduced, data) if dim != 1]
    if len([1 for _ in itertools.groupby(parts)]) > 3:
        memory.allocate(data, dtype)


def temporaries(op, machine):
    """Bytes; 0 for ops without a rule, None if a size is not known."""
    memory = Memory()
    try:
        dtype = op.get_attr("T")
    except ValueError:
        return 0
    try:
        last = op.get_attr("data_format").decode() in ("NHWC", "NDHWC")
    except ValueError:
        last = True
    tensors = list(op.inputs) + list(op.outputs)
    if op.type in CONVOLUTIONS:
        kernel, *at = CONVOLUTIONS[op.type]
        shapes = [(op.outputs[0] if i is None else op.inputs[i]).shape for i in at]
        if not all(shape.is_fully_defined() for shape in shapes):
            return None
        data, filt, result = (shape.as_list() for shape in shapes)
        kernel(memory, machine, dtype, last, Window(op, data, filt, last), data, filt, result)
    elif op.type.startswith("FusedBatchNorm"):
        # FusedBatchNorm and FusedBatchNormGrad for GPUs in fused_batch_norm_op.cc.
        x = op.inputs[1 if "Grad" in op.type else 0]
        if not x.shape.is_fully_defined():
            return None
        if last and op.get_attr("is_training"):
            for _ in ("dy", "x", "dx") if "Grad" in op.type else ("x", "y"):
                memory.allocate(dims_of(x), dtype)
    elif op.type == "AvgPoolGrad":
        # AvgPoolingGradOpCustomGPUKernel in avgpooling_op.cc, DnnPoolingGradOp in
        # pooling_ops_common.cc.
        if not all(t.shape.is_fully_defined() for t in (op.outputs[0], op.inputs[1])):
            return None
        if not last:
            memory.allocate(dims_of(op.outputs[0]), dtype)
            memory.allocate(dims_of(op.inputs[1]), dtype)
    elif op.type in ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"):
        if not tensors[0].shape.is_fully_defined():
            return None
        reduction(memory, op, dims_of(tensors[0]), dtype)
    return memory.most


def convolution_cases():
    """Each op in each format, type and padding, on sizes of which none divides another."""
    small = dict(size=13, window=3, stride=1, dilation=1, padding="SAME", depth=6, maps=10)
    forms = [small, dict(small, stride=2), dict(small, size=14, stride=2), dict(small, window=1),
             dict(small, window=1, stride=2), dict(small, depth=1), dict(small, maps=1),
             dict(small, padding="VALID"), dict(small, window=13, padding="VALID"),
             dict(small, window=4), dict(small, dilation=2), dict(small, window=1, dilation=2),
             dict(small, padding=(2, 1)), dict(small, padding=(3, 0)), dict(small, groups=2),
             dict(small, window=1, groups=2)]
    for spatial, form, last, dtype in itertools.product(
            (2, 3), forms, (True, False), (tf.float32, tf.float16, tf.bfloat16)):
        if spatial == 3 and (isinstance(form["padding"], tuple) or form.get("groups")):
            continue
        name = "%dD %s %s %s" % (spatial, form, last, dtype.name)
        yield name, lambda: convolutions(spatial, last, dtype, **form)


def convolutions(spatial, last, dtype, size, window, stride, dilation, padding, depth, maps, groups=1):
    """A convolution and both gradients."""

    def laid_out(batch, space, channels):
        return [batch] + space + [channels] if last else [batch, channels] + space

    attrs = dict(strides=laid_out(1, [stride] * spatial, 1),
                 dilations=laid_out(1, [dilation] * spatial, 1),
                 data_format=("N%sC" if last else "NC%s") % "DHW"[3 - spatial:])
    if isinstance(padding, tuple):
        pads = laid_out([0, 0], [list(padding), [1, 1]], [0, 0])
        attrs.update(padding="EXPLICIT", explicit_paddings=sum(pads, []))
    else:
        attrs.update(padding=padding)
    x = source(laid_out(3, [size] * spatial, depth), dtype)
    w = source([window] * spatial + [depth // groups, maps], dtype)
    if spatial == 2:
        y = raw.Conv2D(input=x, filter=w, **attrs)
        g = source(y.shape, dtype)
        return [y, raw.Conv2DBackpropInput(input_sizes=x.shape.as_list(), filter=w, out_backprop=g,
                                           **attrs),
                raw.Conv2DBackpropFilter(input=x, filter_sizes=w.shape.as_list(), out_backprop=g,
                                         **attrs)]
    y = raw.Conv3D(input=x, filter=w, **attrs)
    g = source(y.shape, dtype)
    return [y, raw.Conv3DBackpropInputV2(input_sizes=x.shape.as_list(), filter=w, out_backprop=g,
                                         **attrs),
            raw.Conv3DBackpropFilterV2(input=x, filter_sizes=w.shape.as_list(), out_backprop=g,
                                       **attrs)]


def depthwise_ops(last, dtype, window, stride, depth, times):
    shape = [3, 13, 13, depth] if last else [3, depth, 13, 13]
    strides = [1, stride, stride, 1] if last else [1, 1, stride, stride]
    attrs = dict(strides=strides, padding="SAME", data_format="NHWC" if last else "NCHW")
    x, w = source(shape, dtype), source([window, window, depth, times], dtype)
    y = raw.DepthwiseConv2dNative(input=x, filter=w, **attrs)
    g = source(y.shape, dtype)
    return [y, raw.DepthwiseConv2dNativeBackpropInput(
                input_sizes=x.shape.as_list(), filter=w, out_backprop=g, **attrs),
            raw.DepthwiseConv2dNativeBackpropFilter(
                input=x, filter_sizes=w.shape.as_list(), out_backprop=g, **attrs)]


def batch_norm(last, dtype, training):
    x = source([3, 5, 7, 11] if last else [3, 11, 5, 7], dtype)
    s = source([11], tf.float32)
    attrs = dict(data_format="NHWC" if last else "NCHW", is_training=training)
    y = raw.FusedBatchNormV3(x=x, scale=s, offset=s, mean=s, variance=s, **attrs)
    g = raw.FusedBatchNormGradV3(y_backprop=x, x=x, scale=s, reserve_space_1=s, reserve_space_2=s,
                                 reserve_space_3=s, **attrs)
    return [y[0], g[0]]


def average_pool(last):
    size, window = ([3, 12, 12, 5], [1, 3, 3, 1]) if last else ([3, 5, 12, 12], [1, 1, 3, 3])
    grad = source([3, 4, 4, 5] if last else [3, 5, 4, 4], tf.float32)
    return [raw.AvgPoolGrad(orig_input_shape=size, grad=grad, ksize=window, strides=window,
                            padding="VALID", data_format="NHWC" if last else "NCHW")]


def source(shape, dtype):
    return tf1.placeholder(dtype, shape)


def cases():
    yield from convolution_cases()
    for last, dtype, training in itertools.product(
            (True, False), (tf.float32, tf.float16), (True, False)):
        yield ("batch norm %s %s %s" % (last, dtype.name, training),
               lambda: batch_norm(last, dtype, training))
    for last, dtype, form in itertools.product(
            (True, False), (tf.float32, tf.float16),
            ((3, 1, 6, 1), (3, 2, 6, 1), (3, 3, 6, 1), (4, 1, 6, 1), (3, 1, 6, 2), (3, 1, 1, 4))):
        yield ("depthwise %s %s %s" % (last, dtype.name, form),
               lambda: depthwise_ops(last, dtype, *form))
    for last in (True, False):
        yield "average pool %s" % last, lambda: average_pool(last)
    for shape, axes in (([2, 3, 5, 7], [1, 3]), ([2, 3, 5, 7], [0, 2]), ([2, 3, 5, 7], [1, 2]),
                        ([2, 3, 5, 7], [-1, -3]), ([2, 3, 1, 7], [1, 3]), ([1, 3, 5, 7], [1, 3]),
                        ([2, 3, 1, 5, 7], [1, 4]), ([2, 3, 5, 7], [])):
        yield ("sum %s %s" % (shape, axes),
               lambda: [raw.Sum(input=source(shape, tf.float32), axis=tf.constant(axes, tf.int32))])


def needed(graph, targets):
    """The names of all that a step with these targets runs."""
    found, left = set(), [graph.get_operation_by_name(name.split(":")[0]) for name in targets]
    while left:
        op = left.pop()
        if op.name not in found:
            found.add(op.name)
            left += [t.op for t in op.inputs] + list(op.control_inputs)
    return found


class Suite:
    def __init__(self, program, folder):
        self._program, self._folder = program, folder
        self.passed, self.failed = 0, 0

    def graph(self, name, graph, graph_def, machine, targets=(), flags=()):
        """Compares the largest temporaries of a graph."""
        known = {op.name: temporaries(op, machine) for op in graph.get_operations()}
        path = self._folder / "graph.pb"
        path.write_bytes(graph_def)
        command = [self._program, "simulate", str(path), "--kernel-memory=auto",
                   "--grappler=as_is", "--json",
                   *machine.flags(), *flags] + ["--targets=" + ",".join(targets)] * bool(targets)
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not run.stdout:
            return self.check(name, run.stderr, "an answer")
        answer = json.loads(run.stdout)
        said = answer.get("temporaries", [])
        run_by_step = needed(graph, answer.get("targets", []))
        known = {node: bytes for node, bytes in known.items() if node in run_by_step}
        for each in said:
            if known.get(each["node"]) is not None:
                self.check("%s, %s" % (name, each["node"]), int(each["bytes"]), known[each["node"]])
        if targets or all(bytes is not None for bytes in known.values()):
            largest = sorted((b for b in known.values() if b), reverse=True)[:MOST]
            self.check(name, [int(each["bytes"]) for each in said], largest)

    def check(self, name, actual, expected):
        if actual == expected:
            self.passed += 1
            return
        self.failed += 1
        print("FAILED %s: %s, by TensorFlow's source %s" % (name, actual, expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spillway", required=True, metavar="PROGRAM")
    parser.add_argument("-k", default="", metavar="PATTERN", help="only cases whose name holds it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(options.spillway, pathlib.Path(folder))
        machines = [Machine(6.1), Machine(7.0), Machine(8.6), Machine(9.0, tf32=False)]
        for name, build in cases():
            if options.k not in name:
                continue
            with tf.Graph().as_default() as graph:
                outputs = build()
            graph_def = graph.as_graph_def(add_shapes=True).SerializeToString()
            for machine in machines:
                suite.graph("%s on %s" % (name, machine.flags()), graph, graph_def, machine,
                            [t.op.name for t in outputs])
        for name in WHOLE:
            for path in (GRAPHS / name).glob("graph.pb*"):
                if options.k in name:
                    whole(suite, name, path)
    print("%d passed, %d failed" % (suite.passed, suite.failed))
    return 1 if suite.failed else 0


def whole(suite, name, path):
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    graph_def = tf1.GraphDef.FromString(data)
    for node in graph_def.node:
        node.device = ""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    for machine in (Machine(7.0), Machine(8.0)):
        suite.graph("%s on %s" % (name, machine.flags()), graph, data, machine)


if __name__ == "__main__":
    sys.exit(main())
