#include "client_lib/cli/option_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace spillway::cli {
namespace {

constexpr OptionRow kCommon[] = {
    {"feeds",
     "Shape of what a step feeds, for tensor sizes: --feed images=128,224,224,3. NAME= is a "
     "scalar. Give the flag once for each name.",
     "none", "--feed"},
    {"batch_size",
     "Examples in the batch of one step; replaces an unknown first dimension of placeholders, "
     "iterators and queues. 1 to 2^31 - 1.",
     "not set, such a size is unknown", ""},
    {"targets", "Nodes or tensors that one step runs; each must exist.",
     "none named, and forecasts run the weight updates that they find", ""},
    {"devices", "Devices whose tensors may be swapped, e.g. /gpu:0.",
     "every device that is not a CPU; a node without a device counts as one", ""},
    {"min_tensor_bytes", "Tensors smaller than this, in bytes, are not swapped.", "0", ""},
    {"already_rewritten",
     "What to do with a graph that Spillway has rewritten already: keep returns it as it came, "
     "replan strips it first.",
     "keep", ""},
    {"decision_detail",
     "Which decisions the report lists: every tensor considered, or none (for very large graphs).",
     "all", ""},
    {"swap_encoding",
     "How a swap is written: identity runs everywhere, copy (_CopyFromGpuToHost) only on a GPU.",
     "identity", ""},
    {"profile",
     "A serialized tensorflow.RunMetadata or StepStats of a real run of this graph: its times and "
     "bytes replace estimates.",
     "none", ""},
    {"convolution_workspace_bytes",
     "Device memory that each convolution may take while it runs (cuDNN). 0 and up.", "0", ""},
    {"simulation", "Whether the report says what a step takes before and after.", "on", ""},
};

constexpr OptionRow kHardware[] = {
    {"preset", "The machine that a step is simulated on; spillway capabilities lists the presets.",
     "p100_pcie", "--hardware"},
    {"gpu_memory_bytes",
     "What TensorFlow's allocator can use on each GPU (less than the board has): the budget.",
     "the preset's", ""},
    {"host_memory_bytes", "Pinned host memory that the swaps of all GPUs together may use.",
     "the preset's", ""},
    {"peak_flops", "Operations per second; a multiply-add counts as two.", "the preset's", ""},
    {"eff_conv", "Share of --peak-flops that convolutions reach. Above 0, at most 1.",
     "the preset's", ""},
    {"eff_matmul", "Share of --peak-flops that matrix products reach. Above 0, at most 1.",
     "the preset's", ""},
    {"mem_bytes_per_s", "Bytes per second of the GPU's own memory.", "the preset's", ""},
    {"mem_eff", "Share of --mem-bytes-per-s that kernels reach. Above 0, at most 1.",
     "the preset's", ""},
    {"launch_s", "Seconds from one kernel's launch to the next one's. 0 to 1.", "the preset's", ""},
    {"d2h_bytes_per_s", "Bytes per second of copies to the host.", "the preset's", ""},
    {"h2d_bytes_per_s", "Bytes per second of copies to the device.", "the preset's", ""},
    {"copy_latency_s", "Seconds that each copy takes besides its bytes. 0 to 1.", "the preset's",
     ""},
};

constexpr OptionRow kScope[] = {
    {"optimizer_scopes",
     "Name prefixes (RE2) of the backward part: an op belongs to it when its name matches ^SCOPE.",
     "found from the structure of the graph, as gradients, weight updates and what only these read",
     ""},
    {"starting_scope", "Ops whose name matches ^SCOPE (RE2) start the walk.",
     "found, see starting_op_names", ""},
    {"starting_op_names",
     "Ops whose name matches ^NAME$ (RE2) start the walk; each must match an op. Default, with no "
     "--starting-scope either: found.",
     "", ""},
    {"excl_scopes", "Ops named SCOPE or under SCOPE/ do not have their outputs swapped.", "none",
     ""},
    {"incl_scopes", "Only ops named SCOPE or under SCOPE/ have their outputs swapped.", "none", ""},
    {"excl_types",
     "Op types whose outputs are not swapped, besides Const, Mul, Add, Identity, Assign, "
     "VariableV2, Reshape, Shape, ShapeN and Placeholder.",
     "none", ""},
    {"incl_types", "Only ops of these types have their outputs swapped.", "none", ""},
    {"n_tensors", "At most this many tensors are swapped. Negative: all; 0: none.", "-1", ""},
    {"lb",
     "Lower bound, in levels, of the distance between a swap-in's trigger and its consumer: larger "
     "starts the copy earlier and holds its memory longer. 1 to ub.",
     "1", ""},
    {"ub", "Upper bound, in levels, of that distance. 1 and up.", "10000", ""},
    {"fuse_swapins",
     "One swap-in for all consumers of a tensor: fewer copies, more memory between the first "
     "consumer and the last.",
     "false", ""},
    {"ctrld_strategy",
     "How triggers are looked for: chain_rule pairs forward and backward ops, direct_order takes "
     "an op that leads to the consumer.",
     "chain_rule", ""},
    {"swap_branches",
     "Also swap for forward consumers that lie more than branch_threshold levels behind the first "
     "(long skip connections).",
     "false", ""},
    {"branch_threshold", "See --swap-branches. In levels. 0 and up.", "0", ""},
    {"debug", "Lists names and types of ops, to tune by; see --debug-level.", "false", ""},
    {"debug_level",
     "With --debug: 1 lists the starting ops, 2 every op that the walk passes, in its order.", "1",
     ""},
    {"cpu_device", "Device of the swap nodes, that is, of host memory.",
     "the first CPU of the job, replica and task of the tensor's producer", ""},
};

constexpr StrategyTable kStrategies[] = {
    {"scope", kScope},
};

}  // namespace

absl::Span<const OptionRow> CommonOptions() { return kCommon; }

absl::Span<const OptionRow> HardwareOptions() { return kHardware; }

absl::Span<const StrategyTable> Strategies() { return kStrategies; }

std::string FlagOf(const OptionRow& row) {
  if (!row.flag.empty()) return std::string(row.flag);
  return absl::StrCat("--", absl::StrReplaceAll(row.field, {{"_", "-"}}));
}

}  // namespace spillway::cli
