#include "rewrite_core/plan/readers.h"

#include "absl/strings/string_view.h"

namespace spillway::core {

SwapInReaders::SwapInReaders(const StepFacts& facts, const Eligibility& eligibility)
    : facts_(facts), eligibility_(eligibility) {
  const Graph& graph = facts.graph();
  for (int32_t op = 0; op < graph.num_ops(); ++op) {
    const absl::string_view name = graph.op_name(op);
    op_is_loop_.push_back(name == "While" || name == "StatelessWhile");
  }
}

}  // namespace spillway::core
