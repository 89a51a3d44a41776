#include "client_lib/cli/flags/option_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace spillway::cli {
namespace {

constexpr OptionRow kStep[] = {
    {"feeds",
     "Shape of what a step feeds, for tensor sizes: --feed images=128,224,224,3. NAME= is a "
     "scalar. Of integers and bools also the value, which shapes and conditionals may hang on: "
     "--feed crop=2:64,64, and of one bool --feed is_training=true. Of a captured variable that "
     "the "
     "graph does not tell the shape of, its shape. Give the flag once for each name.",
     "none", "--feed"},
    {"batch_size",
     "Examples in the batch of one step; replaces an unknown first dimension of placeholders, "
     "iterators and queues. Tuning needs it where the graph leaves the batch open. 1 to 2^31 - 1.",
     "not set, such a size is unknown", ""},
    {"targets",
     "Nodes or tensors that one step runs; each must exist. What trains is: the weight updates, "
     "what waits for them (the train op), moving averages, the loss.",
     "none named, what trains is found", ""},
    {"profile",
     "A serialized tensorflow.RunMetadata or StepStats of a real run of this graph: its times and "
     "bytes replace estimates.",
     "none", ""},
    {"convolution_workspace_bytes",
     "Device memory that each convolution may take while it runs (cuDNN). 0 and up.", "0", ""},
    {"loop_counts",
     "How many iterations a loop makes, where the graph does not tell: --loop-count "
     "rnn/while/while_context=200. What a loop keeps for its gradient counts so often. Loops are "
     "named by the attribute frame_name of their Enter nodes. 1 and up; give the flag once for "
     "each loop.",
     "none, the graph tells it or it is unknown", "--loop-count"},
};

constexpr OptionRow kCommon[] = {
    {"devices", "Devices whose tensors may be swapped, e.g. /gpu:0.",
     "every device that is not a CPU; a node without a device counts as one", ""},
    {"cpu_device", "Device of the swap nodes, that is, of host memory.",
     "the first CPU of the job, replica and task of the tensor's producer", ""},
    {"min_tensor_bytes", "Tensors smaller than this, in bytes, are not swapped.", "0", ""},
    {"already_rewritten",
     "What to do with a graph that Spillway has rewritten already: keep returns it as it came, "
     "replan strips it first.",
     "keep", ""},
    {"decision_detail",
     "Which decisions the report lists: every tensor considered, or none (for very large graphs).",
     "all", ""},
    {"simulation", "Whether the report says what a step takes before and after.", "on", ""},
    {"inline_calls",
     "Whether calls of functions (PartitionedCall, If, While and their like) are replaced by the "
     "functions' bodies, whose tensors can be swapped then (not in loops): auto does so if "
     "something is swapped.",
     "auto", ""},
};

constexpr OptionRow kHardware[] = {
    {"preset",
     "The machine that a step is simulated on, and that plans are made for; spillway "
     "capabilities lists the presets. auto: that of this machine's GPUs, as nvidia-smi names them.",
     "p100_pcie", "--hardware"},
    {"gpu_memory_bytes",
     "What TensorFlow's allocator can use on each GPU (less than the board has); less "
     "--allocator-reserve, the budget. With neither this nor --hardware, nvidia-smi is asked, "
     "where there is one.",
     "the preset's", ""},
    {"gpu_memories",
     "The memory of a GPU that has another than --gpu-memory-bytes: --gpu-memory /gpu:1=12GiB. "
     "Give the flag once for each.",
     "none", "--gpu-memory"},
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
    {"allocator_reserve",
     "Share of --gpu-memory-bytes that is left to what is not simulated: chunks of TensorFlow's "
     "allocator that are larger than what is in them, other orders of execution. 0 to 0.9.",
     "0.1", ""},
    {"internal_fragmentation_fraction",
     "gpu_options.experimental.internal_fragmentation_fraction of the session that trains: its "
     "allocator also splits chunks that are larger than what is asked for by this share of "
     "--gpu-memory-bytes, which leaves more memory to use. 0: as TensorFlow does by default. From "
     "0, "
     "below 1.",
     "0", ""},
};

// The filters of TFLMS v2, which two strategies share.
constexpr OptionRow kExclOutputByScopes = {
    "excl_output_by_scopes",
    "Outputs of ops whose name begins so are not swapped. In this and the seven flags that follow, "
    "what matches no op is an error.",
    "none", ""};
constexpr OptionRow kInclOutputByScopes = {
    "incl_output_by_scopes",
    "Only outputs of ops whose name begins so are swapped; with --incl-output-by-types also those "
    "of its types.",
    "none", ""};
constexpr OptionRow kExclOutputByTypes = {
    "excl_output_by_types",
    "Outputs of ops of these types are not swapped; level besides never swaps those of variables, "
    "constants and the like.",
    "none", ""};
constexpr OptionRow kInclOutputByTypes = {
    "incl_output_by_types",
    "Only outputs of ops of these types are swapped; see --incl-output-by-scopes.", "none", ""};
constexpr OptionRow kExclInputByScopes = {"excl_input_by_scopes",
                                          "Ops whose name begins so read no swap-in.", "none", ""};
constexpr OptionRow kInclInputByScopes = {
    "incl_input_by_scopes",
    "Only ops whose name begins so read swap-ins; with --incl-input-by-types also those of its "
    "types.",
    "none", ""};
constexpr OptionRow kExclInputByTypes = {
    "excl_input_by_types",
    "Ops of these types read no swap-in; with level neither do variables, constants and the like.",
    "none", ""};
constexpr OptionRow kInclInputByTypes = {
    "incl_input_by_types", "Only ops of these types read swap-ins; see --incl-input-by-scopes.",
    "none", ""};

constexpr OptionRow kLevel[] = {
    {"swapout_threshold",
     "Edges longer than this, in levels, are swapped: smaller swaps more. -1: tuned to the "
     "machine, for each GPU on its own. -1, or 1 and up.",
     "-1", ""},
    {"swapin_ahead",
     "A swap-in starts this many levels before its first consumer: larger starts the copy earlier "
     "and holds its memory longer. Of no effect with --sync-mode 2 and 3. -1: tuned. -1, or 1 and "
     "up.",
     "-1", ""},
    {"swapin_groupby",
     "Consumers of a tensor that are at most this many levels apart share a swap-in: larger makes "
     "fewer copies, and holds memory between the first consumer and the last. 0: one each. -1: "
     "tuned. -1 and up.",
     "-1", ""},
    {"sync_mode",
     "What waits for copies. 0: nothing; 1: the other consumers of a tensor wait until it is out; "
     "2: a swap-in waits for the other inputs of its consumer; 3: both. Slower, and less memory. "
     "Where something is tuned, the least mode that is tried. 0 to 3.",
     "0", ""},
    {"serialization",
     "Levels whose ops run one after another, to take less memory at once: an index or a Python "
     "slice each, as in --serialization 12,3:5,-10:.",
     "none", ""},
    {"serialization_by_size",
     "Levels whose ops on one GPU read and write more than this together, in GiB, are serialized. "
     "0: none. 0 and up.",
     "0", ""},
    kExclOutputByScopes,
    kInclOutputByScopes,
    kExclOutputByTypes,
    kInclOutputByTypes,
    kExclInputByScopes,
    kInclInputByScopes,
    kExclInputByTypes,
    kInclInputByTypes,
    {"is_training",
     "Whether the graph runs in training mode: batch normalizations of the other mode are left "
     "alone (--is-training=false).",
     "true", ""},
    {"pace",
     "What is launched behind a swap-in's trigger waits for the swap-in, so that its copy overlaps "
     "with kernels, and what is ready early waits until it is wanted, as in the strategy budget. "
     "Where something is tuned, the better of the plans with and without.",
     "false", ""},
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
     "", "debug"},
};

constexpr OptionRow kBudget[] = {
    {"planning_effort",
     "How many plans are simulated at most for one GPU: low 32, medium 128, high 8192.", "medium",
     ""},
    {"objective",
     "What a plan is to be like, within the GPU's memory: fastest_that_fits; smallest_peak within "
     "--max-slowdown, also where the graph fits as it came; free_swaps_only, swaps whose copies "
     "cost no time.",
     "fastest_that_fits", ""},
    {"max_slowdown",
     "How many times as long as at full speed (unlimited memory) a step may take. Where no plan "
     "is as fast, the error tells the memory with which there is one. 1 and up.",
     "no limit; with SMALLEST_PEAK 1.1", ""},
    kExclOutputByScopes,
    kInclOutputByScopes,
    kExclOutputByTypes,
    kInclOutputByTypes,
    kExclInputByScopes,
    kInclInputByScopes,
    kExclInputByTypes,
    kInclInputByTypes,
};

constexpr StrategyTable kStrategies[] = {
    {"budget", kBudget},
    {"level", kLevel},
    {"scope", kScope},
};

}  // namespace

absl::Span<const OptionRow> CommonOptions() { return kCommon; }

absl::Span<const OptionRow> StepOptions() { return kStep; }

absl::Span<const OptionRow> HardwareOptions() { return kHardware; }

absl::Span<const StrategyTable> Strategies() { return kStrategies; }

std::string FlagOf(const OptionRow& row) {
  if (!row.flag.empty()) return std::string(row.flag);
  return absl::StrCat("--", absl::StrReplaceAll(row.field, {{"_", "-"}}));
}

}  // namespace spillway::cli
