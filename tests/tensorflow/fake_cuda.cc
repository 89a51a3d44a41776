// Stands for libcudart, libcublas and libcudnn without a GPU, for the rehearsal of gpu_cuda.py: the
// functions that it calls, with NVIDIA's prototypes. Memory is the host's, so that an access out of
// bounds ends the process; each stream has a clock of its own, which only moves by its own work.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// Rates for sums by hand: 1 TFLOP/s, 20 GB/s out and 10 GB/s in.
constexpr double kFlops = 1e12, kOut = 20e9, kIn = 10e9;
constexpr int kBadParameter = 3;

struct Stream {
  double ms = 0;
};
struct Event {
  double ms = 0;
};
struct Blas {
  Stream* stream = nullptr;
};
struct Tensor {
  int format, type, n, c, h, w;
  int64_t bytes() const { return int64_t{1} * n * c * h * w * (type == 2 ? 2 : 4); }
};
struct Convolution {
  int pad, stride, groups;
};

// cudnnConvolutionFwdAlgoPerf_t.
struct Performance {
  int algorithm, status;
  float ms;
  size_t memory;
  int determinism, math;
  int reserved[3];
};

Stream default_stream;

// Touches all of it.
int Sum(const void* memory, int64_t bytes) {
  int sum = 0;
  for (int64_t i = 0; i < bytes; i += 64) sum += static_cast<const char*>(memory)[i];
  return sum + static_cast<const char*>(memory)[bytes - 1];
}

// Two algorithms: one without workspace, which takes 1 ms for each MB of input and output, and one
// that takes half as long and needs both as workspace; and one that failed.
int Find(const Tensor* a, const void* a_memory, const Tensor* b, const void* b_memory,
         const Convolution* convolution, const Tensor* c, const void* c_memory, int requested,
         int* returned, Performance* results, const void* workspace, size_t workspace_bytes,
         const Tensor* in, const Tensor* filter, const Tensor* out) {
  const int window = filter->h;
  const int side = (in->h + 2 * convolution->pad - window) / convolution->stride + 1;
  if (requested < 3 || out->h != side || out->c != filter->n || in->n != out->n ||
      in->c != filter->c * convolution->groups) {
    return kBadParameter;
  }
  volatile int sum = Sum(a_memory, a->bytes()) + Sum(b_memory, b->bytes()) +
                     Sum(c_memory, c->bytes()) +
                     Sum(workspace, static_cast<int64_t>(workspace_bytes));
  (void)sum;
  const int64_t bytes = in->bytes() + out->bytes();
  const float ms = static_cast<float>(bytes) / 1e6F;
  *returned = 2;
  results[0] = {1, 0, ms / 2, static_cast<size_t>(bytes), 0, 0, {}};
  results[1] = {0, 0, ms, 0, 0, 0, {}};
  if (static_cast<size_t>(bytes) > workspace_bytes) results[0].status = 9;
  return 0;
}

template <typename T>
int New(void** made) {
  *made = new T();  // Until the process ends.
  return 0;
}

}  // namespace

extern "C" {

int cudaMalloc(void** made, size_t bytes) { return (*made = std::malloc(bytes)) == nullptr; }
int cudaFree(void* memory) { return std::free(memory), 0; }
int cudaHostAlloc(void** made, size_t bytes, unsigned) { return cudaMalloc(made, bytes); }
int cudaFreeHost(void* memory) { return cudaFree(memory); }
int cudaMemGetInfo(size_t* free, size_t* total) { return *free = *total = 64 << 20, 0; }
int cudaDeviceSynchronize() { return 0; }
int cudaStreamCreateWithFlags(void** made, unsigned) { return New<Stream>(made); }
int cudaEventCreate(void** made) { return New<Event>(made); }
int cudaEventRecord(Event* event, const Stream* stream) { return event->ms = stream->ms, 0; }
int cudaEventElapsedTime(float* ms, const Event* start, const Event* end) {
  *ms = static_cast<float>(end->ms - start->ms);
  return 0;
}
int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, Stream* stream) {
  if (kind < 1 || kind > 3) return kBadParameter;
  std::memmove(to, from, bytes);
  if (stream == nullptr) stream = &default_stream;
  stream->ms += 1e3 * static_cast<double>(bytes) / (kind == 2 ? kOut : kIn);
  return 0;
}

int cublasCreate_v2(void** made) { return New<Blas>(made); }
int cublasSetStream_v2(Blas* blas, Stream* stream) { return blas->stream = stream, 0; }
int cublasGemmStridedBatchedEx(Blas* blas, int, int, int m, int n, int k, const float* alpha,
                               const void* a, int a_type, int lda, long long a_stride,
                               const void* b, int b_type, int ldb, long long b_stride,
                               const float* beta, void* c, int c_type, int ldc, long long c_stride,
                               int batch, int compute, int algorithm) {
  const bool is_half = a_type == 2;
  if (*alpha != 1 || *beta != 0 || lda != m || ldb != k || ldc != m || b_type != a_type ||
      c_type != a_type || compute != (is_half ? 68 : 77) || algorithm != -1) {
    return kBadParameter;
  }
  const int64_t size = is_half ? 2 : 4;
  volatile int sum = Sum(a, size * a_stride * batch) + Sum(b, size * b_stride * batch);
  (void)sum;
  std::memset(c, 0, static_cast<size_t>(size * c_stride * batch));
  blas->stream->ms += 1e3 * 2.0 * m * n * k * batch / (is_half ? 2 * kFlops : kFlops);
  return 0;
}

int cudnnCreate(void** made) { return New<int>(made); }
int cudnnCreateTensorDescriptor(void** made) { return New<Tensor>(made); }
int cudnnCreateFilterDescriptor(void** made) { return New<Tensor>(made); }
int cudnnCreateConvolutionDescriptor(void** made) { return New<Convolution>(made); }
int cudnnSetTensor4dDescriptor(Tensor* tensor, int format, int type, int n, int c, int h, int w) {
  *tensor = {format, type, n, c, h, w};
  return 0;
}
int cudnnSetFilter4dDescriptor(Tensor* filter, int type, int format, int k, int c, int h, int w) {
  *filter = {format, type, k, c, h, w};
  return 0;
}
int cudnnSetConvolution2dDescriptor(Convolution* convolution, int pad, int pad_w, int stride,
                                    int stride_w, int dilation, int dilation_w, int mode,
                                    int type) {
  if (pad != pad_w || stride != stride_w || dilation != 1 || dilation_w != 1 || mode != 1 ||
      type != 0) {
    return kBadParameter;
  }
  *convolution = {pad, stride, 1};
  return 0;
}
int cudnnSetConvolutionGroupCount(Convolution* convolution, int groups) {
  convolution->groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(Convolution*, int type) { return type < 0 || type > 3; }
int cudnnFindConvolutionForwardAlgorithmEx(void*, const Tensor* x, const void* x_memory,
                                           const Tensor* w, const void* w_memory,
                                           const Convolution* convolution, const Tensor* y,
                                           void* y_memory, int requested, int* returned,
                                           Performance* results, void* workspace, size_t bytes) {
  return Find(x, x_memory, w, w_memory, convolution, y, y_memory, requested, returned, results,
              workspace, bytes, x, w, y);
}
int cudnnFindConvolutionBackwardDataAlgorithmEx(void*, const Tensor* w, const void* w_memory,
                                                const Tensor* dy, const void* dy_memory,
                                                const Convolution* convolution, const Tensor* dx,
                                                void* dx_memory, int requested, int* returned,
                                                Performance* results, void* workspace,
                                                size_t bytes) {
  return Find(w, w_memory, dy, dy_memory, convolution, dx, dx_memory, requested, returned, results,
              workspace, bytes, dx, w, dy);
}
int cudnnFindConvolutionBackwardFilterAlgorithmEx(void*, const Tensor* x, const void* x_memory,
                                                  const Tensor* dy, const void* dy_memory,
                                                  const Convolution* convolution, const Tensor* dw,
                                                  void* dw_memory, int requested, int* returned,
                                                  Performance* results, void* workspace,
                                                  size_t bytes) {
  return Find(x, x_memory, dy, dy_memory, convolution, dw, dw_memory, requested, returned, results,
              workspace, bytes, x, dw, dy);
}

}  // extern "C"
