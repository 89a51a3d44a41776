// Whether the program's TensorFlow has the allocator that plans are made for.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_GPU_ALLOCATOR_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_GPU_ALLOCATOR_H_

#include <cstdlib>
#include <string>
#include <string_view>

namespace spillway::internal {

// Returns a warning, one sentence, if this process's environment has TensorFlow use the driver's
// allocator (GetGPUAllocator in core/common_runtime/gpu/gpu_process_state.cc), otherwise "".
// TensorFlow's out-of-memory messages suggest it, but plans are made for TensorFlow's own (BFC),
// and it suits them less:
// - It does not wait. BFC lets an op wait up to 10 s for memory (AllocatorRetry), as ops do in each
//   step while a swap-out still copies. GpuCudaMallocAsyncAllocator::AllocateRaw synchronizes the
//   stream of kernels once, and fails. Plans of swaps in which nothing waits for memory, counted
//   by bytes, reached 0.61 of the bound where plans for BFC reached 0.93 (six graphs, p100_pcie,
//   75, 50 and 35 % of the memory).
// - It fragments. Physical memory is mapped in pieces of 32 MiB, and a piece of which a part is in
//   use serves no larger request. The allocations of ten steps of 1.5 to 16 GiB (nine planned, by
//   bytes), replayed on an H200 with driver 580 on the default pool, needed 0.4 to 28 % more than
//   their bytes (median 7 %), and synchronized up to 44 times in three steps.
// One of the warnings of tensorflow_settings.h, which every door prints.
inline std::string AllocatorWarning() {
  const char* const chosen = std::getenv("TF_GPU_ALLOCATOR");
  if (chosen == nullptr || std::string_view(chosen) != "cuda_malloc_async") return "";
  return "plans are made for TensorFlow's own allocator, and TF_GPU_ALLOCATOR is "
         "cuda_malloc_async, which needs more memory than planned and fails instead of waiting "
         "for a copy to end; unset TF_GPU_ALLOCATOR";
}

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_GPU_ALLOCATOR_H_
