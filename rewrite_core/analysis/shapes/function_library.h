// The functions of a graph's library, and the inferred results of calls of them.
//
// A body is converted to a graph when it is first called. Calls with the same arguments are
// inferred once. Recursive calls, calls nested more than kMaxDepth deep, and calls beyond a total
// of kMaxSteps (roughly, nodes of bodies visited) are not followed: their results are unknown.
// Nothing in a body is an error, because it may never run.
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_LIBRARY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_LIBRARY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shapes/function_body.h"
#include "rewrite_core/analysis/shapes/shape_context.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// Calls `visit` with the name and the FunctionDef bytes of each function of a GraphDef: a node with
// such an op type calls it. False if stopped.
bool ForEachFunction(absl::string_view graph_def, const StopToken& stop,
                     const std::function<void(absl::string_view, absl::string_view)>& visit);

// The names of a function's arguments, in order. False if one is a list of tensors or malformed, or
// if stopped.
bool ReadArgumentNames(absl::string_view function_def, StopPoller* poll,
                       std::vector<absl::string_view>* names);

class FunctionLibrary : public FunctionCaller {
 public:
  static constexpr int kMaxDepth = 64;
  static constexpr int64_t kMaxSteps = 2'000'000;

  // `graph_def`, `pool` and `stop` must outlive the library. If stopped, functions are missing:
  // check `stop`.
  FunctionLibrary(absl::string_view graph_def, int producer, ShapePool& pool,
                  const StopToken& stop);
  ~FunctionLibrary() override;

  const CallFacts* Call(absl::string_view function,
                        absl::Span<const TensorFact> arguments) override;

 private:
  struct Body;
  struct Entry {
    int32_t number = 0;  // Index among the functions.
    absl::string_view function_def;
    std::unique_ptr<Body> body;
    bool built = false;   // Or attempted: it fails without a body.
    bool active = false;  // A call is being inferred.
  };

  std::unique_ptr<Body> Build(absl::string_view function_def);
  // Counts the steps; once the token has fired, it is not checked for each remaining call.
  bool Stops(int64_t steps) { return stopped_ = stopped_ || stop_.ShouldStop(steps); }

  const int producer_;
  ShapePool& pool_;
  const StopToken& stop_;
  absl::flat_hash_map<absl::string_view, Entry> functions_;
  FunctionResults results_;
  // By the function's number and the facts about the arguments.
  absl::flat_hash_map<std::string, std::unique_ptr<CallFacts>> calls_;
  int depth_ = 0;
  int64_t steps_ = 0;
  bool stopped_ = false;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_SHAPES_FUNCTION_LIBRARY_H_
