"""Measurements of on_a_gpu.py without TensorFlow, by ctypes, in its own process: `gpu_cuda.py JOB`,
a JSON object with `do` (`convolutions` or `copies`) and `seconds`. Each line of standard output is
a result, as JSON, so that results stay when the time is up; the last one sums up.

  convolutions  cuDNN's convolutions of known networks and their gradients, in both layouts and two types:
                time and workspace of each algorithm. Reports the cost of a limit on workspaces
                (TF_CUDNN_WORKSPACE_LIMIT_IN_MB), and how large workspaces are beside inputs and outputs.
                Also cuBLAS's matrix products.
  copies        rates of copies each way, both ways at once and beside matrix products, the latency of one,
                and how long it takes to pin host memory

Data is random: multiplying zeros takes less power, so that a GPU clocks higher.
"""
import array
import ctypes
import glob
import json
import math
import pathlib
import random
import struct
import sys
import time

MIB = 1 << 20
# cuDNN's enums: cudnnTensorFormat_t, cudnnDataType_t; cuBLAS's: cudaDataType, cublasComputeType_t. With
# CUDNN_DEFAULT_MATH float32 is convolved in TF32 where the GPU has it, as in TensorFlow.
FORMATS = {"NCHW": 0, "NHWC": 1}
TYPES = {"float32": 0, "half": 2}
CUDA_TYPES = {"float32": 0, "half": 2}
COMPUTE_FLOAT, COMPUTE_TF32 = 68, 77
BYTES = {"float32": 4, "half": 2}
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
LIMITS_MIB = 0, 32, 256, 1024
# The most that a convolution gets: TensorFlow's own limit is 8 GiB.
WORKSPACE = 4 << 30
ALGORITHMS = 10
LIBRARIES = {"cudart": "cuda_runtime", "cublas": "cublas", "cudnn": "cudnn"}


class Performance(ctypes.Structure):
    """cudnnConvolutionFwdAlgoPerf_t, and those of both gradients, which have the same fields."""
    _fields_ = [("algorithm", ctypes.c_int), ("status", ctypes.c_int), ("ms", ctypes.c_float),
                ("memory", ctypes.c_size_t), ("determinism", ctypes.c_int), ("math", ctypes.c_int),
                ("reserved", ctypes.c_int * 3)]


class CudaError(RuntimeError):
    pass


class Library:
    """A library whose functions return 0, or an error."""

    def __init__(self, name, path=None):
        self.name = name
        # Those of pip's packages nvidia-*, which TensorFlow loads, then those of the system.
        found = [path] if path else [file for folder in sys.path for file in sorted(glob.glob(
            "%s/nvidia/%s/lib/lib%s.so.*" % (folder, LIBRARIES[name], name)))]
        for file in found or ["lib%s.so%s" % (name, end)
                              for end in ("", ".13", ".12", ".11.0", ".11", ".9", ".8")]:
            try:
                self._library = ctypes.CDLL(file, mode=ctypes.RTLD_GLOBAL)
                return
            except OSError:
                pass
        raise CudaError("there is no lib%s.so" % name)

    def call(self, function, *arguments):
        error = getattr(self._library, function)(*arguments)
        if error != 0:
            raise CudaError("%s of lib%s: error %d" % (function, self.name, error))

    def made(self, function, *arguments):
        """The pointer that the function makes: its first parameter."""
        made = ctypes.c_void_p()
        self.call(function, ctypes.byref(made), *arguments)
        return made


class Gpu:
    """Memory, streams and times of the first GPU."""

    def __init__(self, job):
        self._runtime = Library("cudart", job.get("library"))
        self.blas = Library("cublas", job.get("library"))
        self._blas_handle = self.blas.made("cublasCreate_v2")
        self._events = [self._runtime.made("cudaEventCreate") for _ in range(2)]

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._runtime.call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def memory(self, size, kind=None):
        """Device memory; with a type, of random numbers."""
        pointer = self._runtime.made("cudaMalloc", ctypes.c_size_t(size))
        if kind:
            numbers = random.Random(size)
            some = [numbers.gauss(0, 1) for _ in range(min(1 << 16, size // BYTES[kind]))]
            block = (array.array("f", some).tobytes() if kind == "float32"
                     else struct.pack("%de" % len(some), *some))
            self.copy(pointer, ctypes.c_char_p(block), len(block), HOST_TO_DEVICE)
            done = len(block)
            while done < size:
                more = min(done, size - done)
                self.copy(ctypes.c_void_p(pointer.value + done), pointer, more, DEVICE_TO_DEVICE)
                done += more
        return pointer

    def pinned(self, size):
        return self._runtime.made("cudaHostAlloc", ctypes.c_size_t(size), ctypes.c_uint(0))

    def release(self, pointer, pinned=False):
        self._runtime.call("cudaFreeHost" if pinned else "cudaFree", pointer)

    def stream(self):
        return self._runtime.made("cudaStreamCreateWithFlags", ctypes.c_uint(1))

    def copy(self, to, source, size, kind, stream=None):
        self._runtime.call("cudaMemcpyAsync", to, source, ctypes.c_size_t(size), ctypes.c_int(kind),
                           stream)
        if stream is None:
            self.wait()

    def wait(self):
        self._runtime.call("cudaDeviceSynchronize")

    def seconds(self, work, stream, turns, beside=None):
        """Of one turn of `work`, on a stream; `beside` is started first, on another."""
        work()
        self.wait()
        if beside:
            beside()
        self._runtime.call("cudaEventRecord", self._events[0], stream)
        for _ in range(turns):
            work()
        self._runtime.call("cudaEventRecord", self._events[1], stream)
        self.wait()
        ms = ctypes.c_float()
        self._runtime.call("cudaEventElapsedTime", ctypes.byref(ms), *self._events)
        return ms.value / 1e3 / turns

    def multiply(self, a, b, c, sizes, kind, stream, batch=1):
        """c = a b, of m x k and k x n, `batch` times."""
        m, n, k = sizes
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        number, stride = CUDA_TYPES[kind], ctypes.c_longlong
        self.blas.call("cublasSetStream_v2", self._blas_handle, stream)
        self.blas.call(
            "cublasGemmStridedBatchedEx", self._blas_handle, 0, 0, m, n, k, ctypes.byref(one),
            a, number, m, stride(m * k), b, number, k, stride(k * n), ctypes.byref(zero),
            c, number, m, stride(m * n), batch,
            COMPUTE_TF32 if kind == "float32" else COMPUTE_FLOAT, -1)


# ---- Convolutions.

def resnet50():
    """(side of the input, channels in and out, window, stride, groups), each shape once."""
    yield 224, 3, 64, 7, 2, 1
    width = 64
    for stage, side in enumerate((56, 28, 14, 7)):
        inner, before = width << stage, side if stage == 0 else 2 * side
        if stage > 0:
            yield before, inner, inner, 3, 2, 1
            yield before, 2 * inner, inner, 1, 1, 1
            yield before, 2 * inner, 4 * inner, 1, 2, 1
        yield side, inner, inner, 3, 1, 1
        yield side, inner, 4 * inner, 1, 1, 1
        yield side, 4 * inner, inner, 1, 1, 1


def unet():
    for level in range(5):
        wide, side = 64 << level, 256 >> level
        yield side, wide // 2 if level else 3, wide, 3, 1, 1
        yield side, wide, wide, 3, 1, 1
        if level < 4:
            yield side, 3 * wide, wide, 3, 1, 1


def mobilenet():
    side, width = 112, 32
    for wider, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        yield side, width, width, 3, stride, width
        side //= stride
        yield side, width, wider, 1, 1, 1
        width = wider


# With the batches of each. The first of every network come first, for when the time is up.
NETWORKS = {"resnet50": (resnet50, (32, 128)), "unet": (unet, (4, 16)),
            "mobilenet": (mobilenet, (32, 128))}


class Convolutions:
    def __init__(self, gpu, job):
        self._gpu, self._library = gpu, Library("cudnn", job.get("library"))
        self._handle = self._library.made("cudnnCreate")
        self._x, self._y = (self._library.made("cudnnCreateTensorDescriptor") for _ in range(2))
        self._filter = self._library.made("cudnnCreateFilterDescriptor")
        self._convolution = self._library.made("cudnnCreateConvolutionDescriptor")
        self._workspace_bytes = min(job.get("workspace", WORKSPACE), gpu.free_bytes() // 4)
        self._workspace = gpu.memory(self._workspace_bytes)

    def measure(self, batch, shape, layout, kind):
        """[{"of": "forward", "bytes": of input and output, "algorithms": [[seconds, workspace], ...]},
        ...], fastest first."""
        side, wide_in, wide_out, window, stride, groups = shape
        out, number, call = -(-side // stride), TYPES[kind], self._library.call
        call("cudnnSetTensor4dDescriptor", self._x, FORMATS[layout], number, batch, wide_in, side, side)
        call("cudnnSetTensor4dDescriptor", self._y, FORMATS[layout], number, batch, wide_out, out, out)
        call("cudnnSetFilter4dDescriptor", self._filter, number, FORMATS[layout], wide_out,
             wide_in // groups, window, window)
        # Odd windows: the same at both ends gives outputs of these sizes.
        call("cudnnSetConvolution2dDescriptor", self._convolution, window // 2, window // 2, stride,
             stride, 1, 1, 1, TYPES["float32"])
        call("cudnnSetConvolutionGroupCount", self._convolution, groups)
        call("cudnnSetConvolutionMathType", self._convolution, 0 if kind == "float32" else 1)
        sizes = (batch * wide_in * side ** 2, wide_out * wide_in // groups * window ** 2,
                 batch * wide_out * out ** 2)
        memory = [self._gpu.memory(size * BYTES[kind], kind) for size in sizes]
        x, w, y = zip((self._x, self._filter, self._y), memory)
        found = []
        for name, function, operands in (
                ("forward", "Forward", (x, w, None, y)),
                ("input gradient", "BackwardData", (w, y, None, x)),
                ("filter gradient", "BackwardFilter", (x, y, None, w))):
            results, count = (Performance * ALGORITHMS)(), ctypes.c_int()
            flat = [part for operand in operands for part in operand or (self._convolution,)]
            try:
                call("cudnnFindConvolution%sAlgorithmEx" % function, self._handle, *flat, ALGORITHMS,
                     ctypes.byref(count), results, self._workspace,
                     ctypes.c_size_t(self._workspace_bytes))
            except CudaError as error:
                found.append({"of": name, "failed": str(error)})
                continue
            found.append({"of": name, "bytes": (sizes[0] + sizes[2]) * BYTES[kind], "algorithms": [
                [result.ms / 1e3, result.memory] for result in results[:count.value]
                if result.status == 0]})
        for pointer in memory:
            self._gpu.release(pointer)
        return found


def convolutions(gpu, job):
    engine, end, measured, left = Convolutions(gpu, job), time.monotonic() + job["seconds"], [], 0
    for sizes in zip(*(batches for _, batches in NETWORKS.values())):
        for (network, (shapes, _)), batch in zip(NETWORKS.items(), sizes):
            for shape in shapes():
                if job.get("rehearse"):
                    batch, shape = 1, (8, *(min(8, wide) for wide in shape[1:3]), *shape[3:5],
                                       min(8, shape[5]))
                for layout in FORMATS:
                    for kind in TYPES:
                        if time.monotonic() > end:
                            left += 1
                            continue
                        found = {"network": network, "batch": batch, "shape": shape,
                                 "layout": layout, "type": kind}
                        try:
                            found["kernels"] = engine.measure(batch, shape, layout, kind)
                        except CudaError as error:  # Of this one: others go on.
                            found["failed"] = str(error)
                        tell(found)
                        measured.append(found)
    return {**summary(measured), "left_out": left, "products": products(gpu, job)}


def summary(measured):
    """{"LAYOUT TYPE": how many times as long all take at each limit on workspaces, and the largest and
    the median workspace of the fastest, as a share of its input and output}."""
    groups = {}
    for found in measured:
        for kernel in found.get("kernels", []):
            if kernel.get("algorithms"):
                groups.setdefault("%s %s" % (found["layout"], found["type"]), []).append(kernel)
    return {"groups": {name: _group(kernels) for name, kernels in groups.items()}}


def _group(kernels):
    def best(kernel, limit):
        return min((seconds for seconds, size in kernel["algorithms"] if size <= limit),
                   default=None)

    slower, total = {}, sum(best(kernel, math.inf) for kernel in kernels)
    for limit in LIMITS_MIB:
        times = [best(kernel, limit * MIB) for kernel in kernels]
        slower[str(limit)] = {
            "slower": sum(seconds or best(kernel, math.inf)
                          for seconds, kernel in zip(times, kernels)) / total,
            "without_any": times.count(None)}
    shares = sorted(min(kernel["algorithms"])[1] / kernel["bytes"] for kernel in kernels)
    return {"kernels": len(kernels), "at_limit_mib": slower, "median_share": shares[len(shares) // 2],
            "largest_share": shares[-1]}


# Products of BERT-base and classifiers: (m, n, k), and how many at once.
PRODUCTS = {"square": ((8192, 8192, 8192), 1), "narrow": ((32768, 64, 768), 1),
            "batch": ((128, 128, 64), 768)}


def products(gpu, job):
    """{"NAME TYPE": operations per second}."""
    found, stream = {}, gpu.stream()
    for name, (sizes, batch) in PRODUCTS.items():
        if job.get("rehearse"):
            sizes, batch = (8, 4, 2), min(batch, 3)
        m, n, k = sizes
        for kind in TYPES:
            memory = [gpu.memory(batch * size * BYTES[kind], kind) for size in (m * k, k * n, m * n)]
            seconds = gpu.seconds(lambda: gpu.multiply(*memory, sizes, kind, stream, batch),
                                  stream, 20)
            for pointer in memory:
                gpu.release(pointer)
            found["%s %s" % (name, kind)] = 2.0 * batch * m * n * k / seconds
    return found


# ---- Copies.

def copies(gpu, job):
    size, turns = (MIB if job.get("rehearse") else 256 * MIB), 8
    out, back, compute = gpu.stream(), gpu.stream(), gpu.stream()
    device = [gpu.memory(size) for _ in range(2)]
    host = [gpu.pinned(size) for _ in range(2)]

    def away(some=size):
        gpu.copy(host[0], device[0], some, DEVICE_TO_HOST, out)

    def home(some=size):
        gpu.copy(device[1], host[1], some, HOST_TO_DEVICE, back)

    side = 64 if job.get("rehearse") else 8192
    squares = [gpu.memory(side ** 2 * 4, "float32") for _ in range(3)]

    def multiply():
        for _ in range(turns):
            gpu.multiply(*squares, (side, side, side), "float32", compute)

    def both(other):
        def start():
            for _ in range(2 * turns):  # Longer than the measured copies.
                other()
        return start

    rates = {"out": gpu.seconds(away, out, turns), "in": gpu.seconds(home, back, turns),
             "out_while_in": gpu.seconds(away, out, turns, both(home)),
             "in_while_out": gpu.seconds(home, back, turns, both(away)),
             "out_beside_kernels": gpu.seconds(away, out, turns, multiply)}
    result = {name: size / seconds for name, seconds in rates.items()}
    result["latency_s"] = gpu.seconds(lambda: away(1024), out, 100)
    tell(result)
    for pointer in host:
        gpu.release(pointer, pinned=True)
    result["pinned_s_per_gib"] = pinning(gpu, job)
    return result


def pinning(gpu, job):
    """{GiB: seconds per GiB}, up to a quarter of the memory that is free."""
    available = 16 * MIB
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    most, found, end = available // 4, {}, time.monotonic() + job["seconds"] / 2
    for gib in (0.25, 1, 4, 16, 32):
        size = int(gib * (MIB if job.get("rehearse") else 1 << 30))
        if size > most or time.monotonic() > end:
            break
        start = time.perf_counter()
        pointer = gpu.pinned(size)
        found[str(gib)] = (time.perf_counter() - start) / gib
        gpu.release(pointer, pinned=True)
    return found


def tell(found):
    print(json.dumps(found), flush=True)


def main():
    job = json.loads(sys.argv[1])
    try:
        tell({"convolutions": convolutions, "copies": copies}[job["do"]](Gpu(job), job))
    except CudaError as error:
        tell({"failed": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
