#include "rewrite_core/graph/op_registry.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_split.h"

namespace spillway::core {
namespace {

struct TableRow {
  absl::string_view name;
  absl::string_view outputs;
  absl::string_view output_names;
  bool is_stateful;
  Forwards forwards;
  RunAgain run_again;
};

// Sorted by name, so that a look-up is a binary search and start-up costs nothing.
constexpr TableRow kTable[] = {
#define SPILLWAY_OP(name, outputs, output_names, is_stateful, forwards, run_again) \
  {name, outputs, output_names, is_stateful, Forwards::forwards, RunAgain::run_again},
#include "rewrite_core/graph/op_table.inc"
#undef SPILLWAY_OP
};

// Registered only by TensorFlow's GPU builds, so not in the table, which comes from a CPU build.
constexpr TableRow kGpuOnly[] = {
    {"_CopyFromGpuToHost", "T", "", false, Forwards::kNo, RunAgain::kNever},
    {"_CopyFromHostToGpu", "T", "", false, Forwards::kNo, RunAgain::kNever}};

struct ControlFlowRow {
  absl::string_view name;
  ControlFlow kind;
};

constexpr ControlFlowRow kControlFlow[] = {
    {"Enter", ControlFlow::kEnter},
    {"Exit", ControlFlow::kExit},
    {"LoopCond", ControlFlow::kLoopCond},
    {"Merge", ControlFlow::kMerge},
    {"NextIteration", ControlFlow::kNextIteration},
    {"RefEnter", ControlFlow::kEnter},
    {"RefExit", ControlFlow::kExit},
    {"RefMerge", ControlFlow::kMerge},
    {"RefNextIteration", ControlFlow::kNextIteration},
    {"RefSwitch", ControlFlow::kSwitch},
    {"Switch", ControlFlow::kSwitch},
    {"_SwitchN", ControlFlow::kSwitch},
};

// Ops whose GPU kernels put their outputs in host memory for any type (int32 outputs are in host
// memory by rule, see analysis/machine/placement.h).
constexpr absl::string_view kHostOutputs[] = {
    "BroadcastArgs",
    "BroadcastGradientArgs",
    "ConcatOffset",
    "InTopK",
    "Rank",
    "Shape",
    "ShapeN",
    "Size",
    "TensorArraySizeV3",
    "TensorListLength",
    "VariableShape",
};

template <typename Row, size_t N>
const Row* FindRow(const Row (&rows)[N], absl::string_view name) {
  const Row* it =
      std::lower_bound(std::begin(rows), std::end(rows), name,
                       [](const Row& row, absl::string_view n) { return row.name < n; });
  return it != std::end(rows) && it->name == name ? it : nullptr;
}

template <size_t N>
bool Contains(const absl::string_view (&names)[N], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

int FixedOutputCount(absl::string_view outputs) {
  int count = 0;
  for (absl::string_view word : absl::StrSplit(outputs, ' ', absl::SkipEmpty())) {
    if (word.front() == '[' || word.find('*') != absl::string_view::npos) return -1;
    ++count;
  }
  return count;
}

}  // namespace

OpInfo FindOp(absl::string_view name) {
  OpInfo info;
  const TableRow* row = FindRow(kTable, name);
  if (row == nullptr) row = FindRow(kGpuOnly, name);
  if (row == nullptr) return info;
  info.name = row->name;
  info.outputs = row->outputs;
  info.output_names = row->output_names;
  info.is_stateful = row->is_stateful;
  info.forwards = row->forwards;
  info.run_again = row->run_again;
  info.known = true;
  info.fixed_output_count = FixedOutputCount(row->outputs);
  if (const ControlFlowRow* cf = FindRow(kControlFlow, name)) info.control_flow = cf->kind;
  info.host_outputs = Contains(kHostOutputs, name);
  return info;
}

bool IsVariableOp(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"Variable",      "VariableV2",         "VarHandleOp",
                                        "_VarHandlesOp", "AutoReloadVariable", "TemporaryVariable"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace spillway::core
