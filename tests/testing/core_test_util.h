// The vocabulary of the tests of rewrite_core: graphs written in the text form, and error matchers.
#ifndef SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_
#define SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/analysis/graph_facts.h"
#include "rewrite_core/graph/error.h"
#include "rewrite_core/graph/graph.h"
#include "rewrite_core/graph/text.h"
#include "rewrite_core/rewriter.h"

namespace spillway::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// The value of `result`; ends the program with its error if it has none. For set-up code.
template <typename T>
T ValueOrDie(absl::StatusOr<T> result, absl::string_view what) {
  if (result.ok()) return *std::move(result);
  std::cerr << what << ": " << result.status() << "\n";
  std::abort();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).ok();
}

// An error with this code and reason, whose message holds `text`.
MATCHER_P3(IsError, code, reason, text,
           absl::StrCat("is ", absl::StatusCodeToString(code), " ", v1::ErrorReason_Name(reason),
                        " with '", text, "' in its message")) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status << " (" << v1::ErrorReason_Name(core::GetErrorReason(status)) << ")";
  return status.code() == code && core::GetErrorReason(status) == reason &&
         absl::StrContains(status.message(), text);
}

// The same with code INVALID_ARGUMENT.
template <typename Text>
auto IsInvalid(v1::ErrorReason reason, const Text& text) {
  return IsError(absl::StatusCode::kInvalidArgument, reason, std::string(text));
}

// What an error says under `key`.
template <typename T>
std::string ErrorDetailOf(const T& result, const std::string& key) {
  const v1::ErrorInfo info = core::GetErrorInfo(StatusOf(result));
  const auto it = info.metadata().find(key);
  return it == info.metadata().end() ? "(absent)" : it->second;
}

// Names the tests of a suite after their parameter's `name`.
struct CaseName {
  template <typename Param>
  std::string operator()(const ::testing::TestParamInfo<Param>& param_info) const {
    return param_info.param.name;
  }
};

// The serialized GraphDef of a text form.
inline std::string GraphBytes(absl::string_view text) {
  return ValueOrDie(core::ParseGraphText(text), "text form");
}

// A Graph that owns its bytes. May be moved.
class TestGraph {
 public:
  // From the text form.
  explicit TestGraph(absl::string_view text) : TestGraph(FromBytes(GraphBytes(text))) {}

  static TestGraph FromBytes(std::string bytes) {
    TestGraph result;
    result.bytes_ = std::make_unique<std::string>(std::move(bytes));
    result.graph_ = std::make_unique<core::Graph>(ValueOrDie(
        core::Graph::Parse(*result.bytes_, core::DefaultLimits(), core::StopToken()), "graph"));
    return result;
  }

  const core::Graph& operator*() const { return *graph_; }
  const core::Graph* operator->() const { return graph_.get(); }

  // The node of that name; ends the program if there is none.
  core::NodeId Node(absl::string_view name) const {
    const core::NodeId id = graph_->Find(name);
    if (id == core::kNoNode) {
      std::cerr << "no node " << name << "\n";
      std::abort();
    }
    return id;
  }

  // `node:port`, or `node` for port 0.
  core::Tensor Output(absl::string_view spelling) const {
    const size_t colon = spelling.rfind(':');
    if (colon == absl::string_view::npos) return {Node(spelling), 0};
    int port = 0;
    if (!absl::SimpleAtoi(spelling.substr(colon + 1), &port)) std::abort();
    return {Node(spelling.substr(0, colon)), port};
  }

 private:
  TestGraph() = default;

  std::unique_ptr<std::string> bytes_;
  std::unique_ptr<core::Graph> graph_;
};

// A graph with all its analyses.
struct TestFacts {
  explicit TestFacts(TestGraph g, const v1::RewriteOptions& options = {})
      : graph(std::move(g)),
        facts(ValueOrDie(core::GraphFacts::Compute(*graph, options, core::StopToken()),
                         "analyses")) {}
  explicit TestFacts(absl::string_view text, const v1::RewriteOptions& options = {})
      : TestFacts(TestGraph(text), options) {}

  TestGraph graph;
  core::GraphFacts facts;
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_TESTING_CORE_TEST_UTIL_H_
