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

WARM_UP_STEPS = 3
# In the name of a node that runs another again.
CLONE = "lms/recompute_"
# The device that stands for the GPU in a rehearsal; swaps go to CPU:0 there, too.
REHEARSED = "/device:CPU:1"
GPU = "/device:GPU:0"


def session_config(tf, rehearse):
    config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
    if rehearse:
        config.device_count["CPU"] = 2
        # The same bits every time.
        config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = 1
    # As in the forecast: nobody else edits the graph. TensorFlow's own pass (L1) would merge swap-ins
    # that are equal in input and control inputs.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


def gpus(tf):
    return tf.config.list_physical_devices("GPU")


# ---- The machine.

def seconds_per(tf, job, body):
    """Seconds of one turn of `body(x, i)`, which returns the next x: of the difference between a long
    and a short chain, so that what a step costs by itself is not in it. The least of several."""
    times = {}
    for turns in (job["turns"], 4 * job["turns"]):
        graph = tf.Graph()
        with graph.as_default():
            x, step = body(None, -1), None
            for i in range(turns):
                x = body(x, i)
            with tf.device(job["device"]):
                step = tf.reduce_sum(tf.reshape(x, [-1])[:1])
            with tf.compat.v1.Session(graph=graph,
                                      config=session_config(tf, job["rehearse"])) as session:
                session.run(step.op)
                runs = []
                for _ in range(job["runs"]):
                    start = time.perf_counter()
                    session.run(step.op)
                    runs.append(time.perf_counter() - start)
        times[turns] = min(runs)
    short, long = sorted(times)
    return max((times[long] - times[short]) / (long - short), 1e-9)


def machine(tf, job):
    """The numbers of a preset (Hardware in hardware.proto), measured."""
    from tensorflow.python.client import device_lib  # pylint: disable=import-outside-toplevel
    device, small = job["device"], job["rehearse"]
    side = 256 if small else 8192
    pixels, width, images = (14, 16, 4) if small else (28, 256, 64)
    many = (1 << 20) if small else (1 << 26)  # Elements: 4 and 256 MiB.

    def matmul(x, _):
        with tf.device(device):
            return tf.zeros([side, side]) if x is None else tf.matmul(x, x)

    def conv(x, _):
        with tf.device(device):
            if x is None:
                return tf.zeros([images, pixels, pixels, width])
            kernel = tf.zeros([3, 3, width, width])
            y = tf.nn.conv2d(x, kernel, 1, "SAME")
            # Forward, and both ways back, as a training step has them.
            back = tf.compat.v1.nn.conv2d_backprop_filter(x, kernel.shape, y, [1, 1, 1, 1], "SAME")
            return tf.compat.v1.nn.conv2d_backprop_input(x.shape, back, y, [1, 1, 1, 1], "SAME")

    def add(x, _):
        with tf.device(device):
            return tf.zeros([many]) if x is None else x + 1.0

    def launch(x, _):
        with tf.device(device):
            return tf.zeros([8]) if x is None else x + 1.0

    def both_ways(elements):
        def body(x, _):
            if x is None:
                with tf.device(device):
                    return tf.zeros([elements])
            with tf.device("/device:CPU:0"):
                away = tf.identity(x)
            with tf.device(device):
                # The way back is a copy; a reader is needed for it.
                return tf.identity(away)
        return body

    flops = 2.0 * side ** 3 / seconds_per(tf, job, matmul)
    conv_flops = (3 * 2.0 * images * pixels ** 2 * 9 * width ** 2) / seconds_per(tf, job, conv)
    peak = max(flops, conv_flops)
    latency = seconds_per(tf, job, both_ways(256)) / 2
    link = 2 * 4.0 * many / max(seconds_per(tf, job, both_ways(many)) - 2 * latency, 1e-9)
    limits = [one.memory_limit for one in device_lib.list_local_devices()
              if one.device_type == ("CPU" if small else "GPU")]
    return {
        "gpu_memory_bytes": min(limits),
        "host_memory_bytes": host_bytes() // 2,
        "peak_flops": peak, "eff_conv": conv_flops / peak, "eff_matmul": flops / peak,
        "mem_bytes_per_s": 2 * 4.0 * many / seconds_per(tf, job, add), "mem_eff": 1.0,
        "launch_s": min(seconds_per(tf, job, launch), 1.0),
        # A chain of copies goes away and comes back by turns: the mean of both directions.
        "d2h_bytes_per_s": link, "h2d_bytes_per_s": link, "copy_latency_s": min(latency, 1.0)}


def host_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemTotal")


def describe(tf, job):
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus(tf)]
    return {"tensorflow": tf.__version__, "gpus": len(details),
            "gpu": details[0].get("device_name", "unknown") if details else "none (rehearsed)",
            "machine": machine(tf, job)}


# ---- Graphs.

def build(tf, job):
    graph_def, names = gpu_programs.build(tf, job["program"], job["batch"], job["rehearse"])
    pathlib.Path(job["graph"]).write_bytes(graph_def.SerializeToString())
    return names._asdict()


def train(tf, job):
    graph_def = tf.compat.v1.GraphDef.FromString(pathlib.Path(job["graph"]).read_bytes())
    for node in graph_def.node:
        # Without a device TensorFlow takes the first GPU.
        node.device = node.device or (REHEARSED if job["rehearse"] else "")
    graph, names = tf.Graph(), gpu_programs.Names(**job["names"])
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    config = session_config(tf, job["rehearse"])
    # What has no kernel for a GPU (iterators, strings) goes to the CPU.
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
            # What the timed steps fetch, too: without the loss, readers of swap-ins may not run.
            session.run([names.loss, graph.get_operation_by_name(names.train)],
                        options=tf.compat.v1.RunOptions(
                            trace_level=tf.compat.v1.RunOptions.FULL_TRACE),
                        run_metadata=metadata)
    except tf.errors.ResourceExhaustedError as error:
        return {"trained": False, "why": "out of memory at %s" % getattr(error.op, "name", "?")}
    except tf.errors.InternalError as error:
        return {"trained": False, "why": str(error).splitlines()[0][:200]}
    pathlib.Path(job["trace"]).write_bytes(metadata.SerializeToString())
    return {"trained": True, "step_s": statistics.median(times), "losses": losses,
            **engines(metadata.step_stats)}


# ---- What the trace of a GPU says of its engines.

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
    """Busy seconds of kernels, of those that run again, and of copies each way, and the share of the
    copies' time in which a kernel ran. TensorFlow 2 (ConvertGpuXSpaceToStepStats in
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
