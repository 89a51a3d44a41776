// An op for memory_limit.py that takes memory as cuDNN's convolutions do (AllocateScratchOrFallback
// in core/kernels/conv_ops_gpu.h): a workspace, at once or not at all. Built by memory_limit.py
// against TensorFlow's headers.
#include <chrono>
#include <thread>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace {

REGISTER_OP("SpillwayWorkspace")
    .Input("result: T")
    .Input("read: N * T")
    .Output("same: T")
    .Attr("T: type")
    .Attr("N: int")
    .Attr("held_us: int")
    .SetShapeFn(shape_inference::UnchangedShape);

// Behind a convolution: forwards its result, and until then has kept its inputs.
class WorkspaceOp : public OpKernel {
 public:
  explicit WorkspaceOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("held_us", &held_us_));
  }

  // So that the executor runs it before anything else that the convolution has made ready.
  bool IsExpensive() override { return false; }

  void Compute(OpKernelContext* context) override {
    int64_t bytes = 0;
    for (int i = 0; i < context->num_inputs(); ++i) bytes += context->input(i).TotalBytes();
    Allocator* const allocator = context->get_allocator(AllocatorAttributes());
    const AllocationAttributes at_once(/*retry_on_failure=*/false,
                                       /*allocation_will_be_logged=*/false,
                                       /*freed_by_func=*/nullptr);
    void* const workspace = allocator->AllocateRaw(Allocator::kAllocatorAlignment, bytes, at_once);
    // For memory_limit.py, which counts these lines.
    LOG(INFO) << (workspace == nullptr ? "no workspace" : "workspace");
    // A slower algorithm holds the inputs for as long, and none of the memory.
    std::this_thread::sleep_for(std::chrono::microseconds(held_us_));
    if (workspace != nullptr) allocator->DeallocateRaw(workspace);
    context->set_output(0, context->input(0));
  }

 private:
  int64_t held_us_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("SpillwayWorkspace").Device(DEVICE_CPU), WorkspaceOp);

}  // namespace
}  // namespace tensorflow
