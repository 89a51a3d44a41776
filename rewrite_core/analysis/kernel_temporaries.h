// Memory of TensorFlow's kernels on a GPU beside their outputs, while they run: copies of tensors
// in another layout, transformed filters, padded inputs. By the source of TensorFlow 2.15; the
// table in the .cc names the functions.
//
// Bytes are the most that a kernel holds at once, since it frees some copies before it makes
// others. If a size, an attribute or a type is unknown, a kernel is taken to allocate nothing: its
// inputs or outputs are then of unknown size, too, and so is the step. Workspaces that cuDNN
// requires are in Step.convolution_workspace_bytes.
//
// Thread safety: immutable.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_KERNEL_TEMPORARIES_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_KERNEL_TEMPORARIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/grappler_layout.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/analysis/shapes/shapes.h"
#include "rewrite_core/graph/graph.h"

namespace spillway::core {

// More than any GPU has: larger sizes count as this many bytes.
inline constexpr int64_t kMaxTemporaryBytes = int64_t{1} << 50;

struct KernelRow;

class KernelTemporaries {
 public:
  struct Use {
    int64_t bytes = 0;       // At once, at most.
    double moved_bytes = 0;  // To make the copies, and to copy results back.
    // The workspace that cuDNN takes in addition, if free: for a convolution in NCHW about its
    // input and output, which tensor cores need in NHWC; in NHWC next to nothing. An upper estimate
    // by NVIDIA's documents, not measured.
    int64_t wanted_bytes = 0;
    absl::InlinedVector<int64_t, 8> copies;  // The bytes of each, in the order in which it is made.
  };

  // All must outlive it.
  KernelTemporaries(const Graph& graph, const Shapes& shapes, const Hardware& hardware,
                    const GrapplerLayout& layout);

  // Of a node that launches a kernel on a GPU.
  Use Of(NodeId id) const;

  // Why, for people: `FusedBatchNormGradV3 of NHWC float32 copies 3 tensors of 612.50 MiB`.
  std::string Reason(NodeId id, const Use& use) const;

 private:
  Use BatchNorm(NodeId id, const KernelRow& row) const;
  Use Convolution(NodeId id, const KernelRow& row) const;
  Use AveragePoolGradient(NodeId id, const KernelRow& row) const;
  Use Reduction(NodeId id) const;

  ShapeView Operand(NodeId id, int number) const;
  // Whether the kernel, which the layout pass may convert, has channels last; the file has
  // `format`.
  bool RunsLast(NodeId id, absl::string_view format) const;
  absl::string_view String(NodeId id, absl::string_view key, absl::string_view otherwise) const;
  std::vector<int64_t> Ints(NodeId id, absl::string_view key) const;
  DataType Type(NodeId id) const;
  // Whether cuDNN convolves that type in NHWC.
  bool ConvolvesInNhwc(DataType type) const;

  const Graph& graph_;
  const Shapes& shapes_;
  const Hardware& hardware_;
  const GrapplerLayout& layout_;
  const std::vector<const KernelRow*> rows_;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_KERNEL_TEMPORARIES_H_
