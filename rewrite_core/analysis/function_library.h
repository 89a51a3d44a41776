// The functions of a graph's library, and what calls of them return.
//
// A body is turned into a graph of its own when it is first called. Calls with the same arguments
// are inferred once. A function that calls itself, calls nested more than kMaxDepth deep, and calls
// beyond a total of kMaxSteps (about: nodes of bodies that are looked at) are not followed: nothing
// is known of what they return. Nothing in a body is an error: it may never run.
//
// Not thread-safe.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_FUNCTION_LIBRARY_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_FUNCTION_LIBRARY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/shape_context.h"
#include "rewrite_core/base/stop_token.h"

namespace spillway::core {

// The functions of a GraphDef, by name: a node whose op type is one of these calls it. The only
// error is that of `stop`.
absl::StatusOr<absl::flat_hash_set<absl::string_view>> FunctionNames(absl::string_view graph_def,
                                                                     const StopToken& stop);

// Calls `visit` with the name and the bytes (FunctionDef) of each. False: stopped.
bool ForEachFunction(absl::string_view graph_def, const StopToken& stop,
                     const std::function<void(absl::string_view, absl::string_view)>& visit);

// The names of a function's arguments, in order. False if one is a list of tensors, or malformed.
bool ReadArgumentNames(absl::string_view function_def, std::vector<absl::string_view>* names);

class FunctionLibrary : public FunctionCaller {
 public:
  static constexpr int kMaxDepth = 64;
  static constexpr int64_t kMaxSteps = 2'000'000;

  // `graph_def`, `pool` and `stop` must outlive the library. Where it is stopped, functions are
  // missing: ask `stop`.
  FunctionLibrary(absl::string_view graph_def, int producer, ShapePool& pool,
                  const StopToken& stop);
  ~FunctionLibrary() override;

  const CallFacts* Call(absl::string_view function,
                        absl::Span<const TensorFact> arguments) override;

 private:
  struct Body;
  struct Entry {
    int32_t number = 0;  // Among the functions.
    absl::string_view function_def;
    std::unique_ptr<Body> body;
    bool built = false;   // Or tried: without a body it cannot be.
    bool active = false;  // A call is being inferred.
  };

  std::unique_ptr<Body> Build(absl::string_view function_def);

  const int producer_;
  ShapePool& pool_;
  const StopToken& stop_;
  absl::flat_hash_map<absl::string_view, Entry> functions_;
  // By the function's number and what is known of the arguments.
  absl::flat_hash_map<std::string, std::unique_ptr<CallFacts>> calls_;
  int depth_ = 0;
  int64_t steps_ = 0;
};

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_FUNCTION_LIBRARY_H_
