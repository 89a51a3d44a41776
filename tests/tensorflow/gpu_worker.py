"""What on_a_gpu.py does in a process of its own, since a process keeps the GPU's memory, and one that
runs out of it may not go on: `gpu_worker.py JOB`, a JSON object with `do` and what that needs. The last
line of standard output is the result, as JSON.
"""
import json
import os
import pathlib
import statistics
import sys
import time

import gpu_programs
from google.protobuf import text_format

WARM_UP_STEPS = 3
# In the names of clones.
CLONE = "lms/recompute_"
# The device that stands for the GPU in a rehearsal; swaps go to CPU:0 there, too.
REHEARSED = "/device:CPU:1"
GPU = "/device:GPU:0"


def session_config(tf, rehearse, grappler=False):
    config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
    if rehearse:
        config.device_count["CPU"] = 2
        # The same bits every time.
        config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = 1
    if not grappler:
        # The graph as in the file. TensorFlow's own pass (L1) would merge swap-ins that are equal
        # in input and control inputs.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
    return config


def gpus(tf):
    return tf.config.list_physical_devices("GPU")


# ---- The machine.

def seconds_per(tf, job, start, body):
    """Seconds of one turn of `body(x, i)`, which returns the next x, from `start()` on: of the
    difference between a long and a short chain, so that the cost of a step itself is not in it. The
    least of several."""
    times = {}
    for turns in (job["turns"], 4 * job["turns"]):
        graph = tf.Graph()
        with graph.as_default():
            x = start()
            for i in range(turns):
                x = body(x, i)
            with tf.device(job["device"]):
                step = tf.reduce_sum(tf.reshape(x, [-1])[:1])
            with tf.compat.v1.Session(graph=graph,
                                      config=session_config(tf, job["rehearse"])) as session:
                session.run(step.op)
                runs = []
                for _ in range(job["runs"]):
                    begun = time.perf_counter()
                    session.run(step.op)
                    runs.append(time.perf_counter() - begun)
        times[turns] = min(runs)
    short, long = sorted(times)
    return max((times[long] - times[short]) / (long - short), 1e-9)


class Kernels:
    """Kernels of each class of Hardware.efficiencies (hardware.proto), on random data: zeros take less
    power, so that a GPU clocks higher. A class is `(inputs, op, work)`: `inputs()` makes tensors, `op` an
    output of them, the same at each turn but for its number, and `work` is what Spillway counts for it
    (rewrite_core/analysis/cost.cc): bytes, or operations of convolutions and matrix products."""

    def __init__(self, tf, small):
        self._tf, self._small = tf, small
        side = self._side = 256 if small else 8192
        self._image = (4, 16, 14, 14) if small else (64, 256, 56, 56)  # NCHW.
        image = 4.0 * self._elements(self._image)
        matrix = 4.0 * side * side
        rows, width, heads, length = (64, 32, 4, 16) if small else (32768, 768, 768, 128)
        self.classes = {
            "elementwise": (self._normal([side, side]), lambda x, i: tf.nn.relu(x), 2 * matrix),
            "broadcast": (self._normal([side, side], [side], [side, 1]),
                          lambda x, row, column, i: x + (column if i % 2 else row), 2 * matrix),
            "reduction": (self._normal([side, side]), lambda x, i: tf.reduce_sum(x, axis=i % 2), matrix),
            "normalization": (self._normal(self._image, "channels", "channels"), self._norm, 3 * image),
            "transpose": (self._normal(self._image), lambda x, i: tf.transpose(x, [0, 2, 3, 1]),
                          2 * image),
            "pooling": (self._normal(self._image), self._pool, 1.25 * image),
            "gather": (lambda: [self._random([side, side]), tf.random.stateless_uniform(
                [side], [3, 4], maxval=side, dtype=tf.int32)], lambda x, rows, i: tf.gather(x, rows),
                       2 * matrix),
            **{half + "convolution_" + layout.lower(): self._conv(layout, dtype)
               for half, dtype in (("", tf.float32), ("half_", tf.float16))
               for layout in ("NCHW", "NHWC")},
            "depthwise_convolution": (
                self._normal(self._image, [3, 3, self._image[1], 1]), self._depthwise,
                2.0 * 9 * self._elements(self._image)),
            "matmul": self._matmul([side, side], [side, side]),
            "narrow_matmul": self._matmul([rows, width], [width, 64]),
            "batch_matmul": self._matmul([heads, length, 64], [heads, 64, length]),
            "half_matmul": self._matmul([side, side], [side, side], tf.float16)}

    @staticmethod
    def _elements(shape):
        product = 1
        for size in shape:
            product *= size
        return product

    def _random(self, shape, dtype=None):
        return self._tf.random.stateless_normal(shape, seed=[1, len(shape)],
                                                dtype=dtype or self._tf.float32)

    def _shape(self, shape, layout):
        """Kernels for CPUs take no other layout than NHWC."""
        if shape == "channels":
            return [self._image[1]]
        if shape is self._image and layout == "NHWC":
            return [shape[0], *shape[2:], shape[1]]
        return list(shape)

    def layout(self, wanted):
        return "NHWC" if self._small else wanted

    def _normal(self, *shapes, layout="NCHW", dtype=None):
        return lambda: [self._random(self._shape(shape, self.layout(layout)), dtype)
                        for shape in shapes]

    def _norm(self, x, scale, offset, _):
        return self._tf.compat.v1.nn.fused_batch_norm(x, scale, offset,
                                                      data_format=self.layout("NCHW"))[0]

    def _pool(self, x, _):
        return self._tf.nn.max_pool2d(x, 3, 2, "SAME", data_format=self.layout("NCHW"))

    def _depthwise(self, x, kernel, _):
        return self._tf.nn.depthwise_conv2d(x, kernel, [1, 1, 1, 1], "SAME",
                                            data_format=self.layout("NCHW"))

    def _conv(self, layout, dtype):
        """A convolution and both gradients by turns, as a training step has them."""
        nn, wide = self._tf.compat.v1.nn, self._image[1]
        kernel_shape = [3, 3, wide, wide]

        def op(x, kernel, i):
            options = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": self.layout(layout)}
            if i % 3 == 0:
                return nn.conv2d(x, kernel, **options)
            if i % 3 == 1:
                return nn.conv2d_backprop_input(x.shape, kernel, x, **options)
            return nn.conv2d_backprop_filter(x, kernel_shape, x, **options)

        return (self._normal(self._image, kernel_shape, layout=layout, dtype=dtype), op,
                2.0 * self._elements(self._image) * 9 * wide)

    def _matmul(self, a, b, dtype=None):
        return (self._normal(a, b, dtype=dtype), lambda x, y, i: self._tf.matmul(x, y),
                2.0 * self._elements(a) * b[-1])

    def rate(self, job, name):
        """Bytes or operations per second."""
        inputs, op, work = self.classes[name]
        held = []

        def start():
            with self._tf.device(job["device"]):
                held[:] = inputs()
                return held[0]

        def turn(x, i):
            with self._tf.device(job["device"]), self._tf.control_dependencies([x]):
                return op(*held, i)

        return work / seconds_per(self._tf, job, start, turn)


MOVING = "elementwise", "broadcast", "reduction", "normalization", "transpose", "pooling", "gather"


def efficiencies(rates):
    """The numbers of a preset that follow from the rates of classes. Shares are of the fastest; halves
    may be faster than float32."""
    memory = max(rates[name] for name in MOVING)
    peak = max(rates[name] for name in ("matmul", "convolution_nchw", "convolution_nhwc"))
    shares = {name: min(rate / (memory if name in MOVING else peak), 16 if "half" in name else 1.0)
              for name, rate in rates.items()}
    return {"peak_flops": peak, "eff_conv": shares["convolution_nhwc"],
            "eff_matmul": shares["matmul"], "mem_bytes_per_s": memory,
            "mem_eff": shares["elementwise"],
            "efficiencies": [{"kernels": name, "efficiency": share}
                             for name, share in shares.items()]}


def machine(tf, job):
    """The numbers of a preset (Hardware in hardware.proto), measured."""
    from tensorflow.python.client import device_lib  # pylint: disable=import-outside-toplevel
    device, small = job["device"], job["rehearse"]
    many = (1 << 20) if small else (1 << 26)  # Elements: 4 and 256 MiB.
    kernels, rates, failed = Kernels(tf, small), {}, {}
    for name in kernels.classes:
        try:
            rates[name] = kernels.rate(job, name)
        except tf.errors.OpError as error:  # Of this class: the others go on.
            failed[name] = said(error)

    def source(elements):
        def start():
            with tf.device(device):
                return tf.random.stateless_normal([elements], seed=[1, 2])
        return start

    def launch(x, _):
        with tf.device(device):
            return x + 1.0

    def both_ways(x, _):
        with tf.device("/device:CPU:0"):
            away = tf.identity(x)
        with tf.device(device):
            # The way back is a copy; a reader is needed for it.
            return tf.identity(away)

    latency = seconds_per(tf, job, source(256), both_ways) / 2
    link = 2 * 4.0 * many / max(seconds_per(tf, job, source(many), both_ways) - 2 * latency, 1e-9)
    limits = [one.memory_limit for one in device_lib.list_local_devices()
              if one.device_type == ("CPU" if small else "GPU")]
    return {
        "gpu_memory_bytes": min(limits),
        "host_memory_bytes": host_bytes() // 2, **efficiencies(rates),
        "launch_s": min(seconds_per(tf, job, source(8), launch), 1.0),
        # A chain of copies goes away and comes back by turns: the mean of both directions.
        "d2h_bytes_per_s": link, "h2d_bytes_per_s": link,
        "copy_latency_s": min(latency, 1.0)}, failed


def host_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemTotal")


def describe(tf, job):
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus(tf)]
    found, failed = machine(tf, job)
    capability = details[0].get("compute_capability") if details else None
    if capability:
        found["compute_capability"] = float("%d.%d" % tuple(capability))
    return {"tensorflow": tf.__version__, "gpus": len(details),
            "gpu": details[0].get("device_name", "unknown") if details else "none (rehearsed)",
            "machine": found, "failed": failed}


# ---- Graphs.

def build(tf, job):
    graph_def, names = gpu_programs.build(tf, job["program"], job["batch"], job["rehearse"])
    pathlib.Path(job["graph"]).write_bytes(graph_def.SerializeToString())
    return names._asdict()


def said(error):
    """The text and the op of an error of TensorFlow: memory runs out as ResourceExhaustedError, or,
    if cuDNN finds none, as NotFoundError, UnknownError or InternalError."""
    first = (str(error).strip().splitlines() or [""])[0]
    return "%s at %s: %s" % (type(error).__name__, getattr(error.op, "name", "?"), first[:200])


def train(tf, job):
    graph_def = tf.compat.v1.GraphDef.FromString(pathlib.Path(job["graph"]).read_bytes())
    for node in graph_def.node:
        # Without a device TensorFlow takes the first GPU.
        node.device = node.device or (REHEARSED if job["rehearse"] else "")
    graph, names = tf.Graph(), gpu_programs.Names(**job["names"])
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    config = session_config(tf, job["rehearse"], job["grappler"])
    for text in job["config"]:
        text_format.Merge(text, config)
    # Ops without a kernel for a GPU (iterators, strings) go to the CPU.
    config.allow_soft_placement = not job["rehearse"]
    if job["memory_mib"]:
        config.gpu_options.experimental.virtual_devices.add().memory_limit_mb.append(
            job["memory_mib"])
    times, losses, metadata = [], [], tf.compat.v1.RunMetadata()
    try:
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run(names.init)
            for step in range(WARM_UP_STEPS + job["steps"]):
                start = time.perf_counter()
                loss, _ = session.run([names.loss, graph.get_operation_by_name(names.train)])
                if step >= WARM_UP_STEPS:
                    times.append(time.perf_counter() - start)
                losses.append(float(loss))
            # The timed steps' fetches, too: without the loss, readers of swap-ins may not run.
            session.run([names.loss, graph.get_operation_by_name(names.train)],
                        options=tf.compat.v1.RunOptions(
                            trace_level=tf.compat.v1.RunOptions.FULL_TRACE),
                        run_metadata=metadata)
    except tf.errors.OpError as error:
        return {"trained": False, "why": said(error)}
    pathlib.Path(job["trace"]).write_bytes(metadata.SerializeToString())
    return {"trained": True, "step_s": statistics.median(times), "losses": losses,
            **engines(metadata.step_stats)}


# ---- A GPU's engines in its trace.

def intervals(nodes):
    found = []
    for node in nodes:
        start = node.all_start_micros
        found.append((start, start + max(node.op_end_rel_micros, node.all_end_rel_micros)))
    return found


def union(spans):
    """Sorted, without overlaps."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def overlap(a, b):
    """Microseconds that two unions have in common."""
    total, j = 0, 0
    for start, end in a:
        while j < len(b) and b[j][1] <= start:
            j += 1
        k = j
        while k < len(b) and b[k][0] < end:
            total += min(end, b[k][1]) - max(start, b[k][0])
            k += 1
    return total


def engines(step_stats):
    """Busy seconds of kernels, of the clones among them, and of copies each way, and the share of
    the copies' time in which a kernel ran. TensorFlow 2 (ConvertGpuXSpaceToStepStats in
    xplane_to_step_stats.cc) has kernels under `/device:GPU:0/stream:all` and copies under
    `/device:GPU:0/stream:14<MemcpyD2H>`. {}: no GPU."""
    kernels, clones, out, back = [], [], [], []
    for device in step_stats.dev_stats:
        name = device.device
        if name.endswith("/stream:all"):
            kernels += intervals(device.node_stats)
            clones += intervals(node for node in device.node_stats
                                if CLONE in node.node_name or CLONE in node.timeline_label)
        elif name.endswith("<MemcpyD2H>"):
            out += intervals(device.node_stats)
        elif name.endswith("<MemcpyH2D>"):
            back += intervals(device.node_stats)
    if not kernels:
        return {}
    kernels, copies = union(kernels), union(out + back)

    def length(spans):
        return sum(end - start for start, end in spans) / 1e6

    return {"kernel_s": length(kernels), "clones_s": length(union(clones)),
            "copy_out_s": length(union(out)), "copy_in_s": length(union(back)),
            "overlapped": overlap(copies, kernels) / 1e6 / length(copies) if copies else None}


def main():
    job = json.loads(sys.argv[1])
    if job["rehearse"]:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # Whose kernels sum in another order at will.
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    if not job["rehearse"] and not gpus(tf):
        print(json.dumps({"no_gpu": True}))
        return
    tf.compat.v1.disable_eager_execution()
    if job["deterministic"]:
        tf.config.experimental.enable_op_determinism()
    print(json.dumps({"describe": describe, "build": build, "train": train}[job["do"]](tf, job)))


if __name__ == "__main__":
    main()
