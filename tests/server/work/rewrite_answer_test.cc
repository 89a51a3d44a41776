#include "server/work/rewrite_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "rewrite_core/base/error.h"
#include "tests/server/fake_core.h"
#include "tests/server/http_get.h"
#include "tests/server/test_client.h"

namespace spillway::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kSwapped[] = "spillway_swapped_tensors_total{strategy=\"scope\"}";

class RewriteAnswerTest : public testing::Test {
 protected:
  RewriteAnswerTest() {
    options_.rewrite = [this](absl::string_view graph, const v1::RewriteOptions& asked,
                              const v1::Limits& limits, const core::StopToken& stop,
                              core::PlanReuse* reuse) {
      seen_ = asked;
      return FakeRewrite(graph, asked, limits, stop, reuse);
    };
  }

  absl::StatusOr<v1::RewriteResponse> Run(const v1::RewriteOptions& asked,
                                          Framing framing = Framing::kOneMessage) {
    const core::StopToken stop;
    const std::shared_ptr<RewriteAnswer> answer = MakeAnswer("graph bytes", asked, options_, stop);
    absl::Status status = TakeAnswer(*answer, asked, framing, options_, metrics_);
    if (!status.ok()) return status;
    v1::RewriteResponse response = answer->response;
    response.set_graph_def(answer->graph);
    return response;
  }

  double Value(const std::string& series) const {
    return Sample(prometheus::TextSerializer().Serialize(registry_.Collect()), series);
  }

  prometheus::Registry registry_;
  Metrics metrics_{registry_, "test"};
  Options options_ = TestOptions();
  v1::RewriteOptions seen_;  // The options that the core received.
};

TEST_F(RewriteAnswerTest, NoOutputsAskedForMeansTheReportToo) {
  const absl::StatusOr<v1::RewriteResponse> response = Run(ScopeOptions());
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->has_report());
  EXPECT_EQ(seen_.outputs_size(), 0);
  EXPECT_EQ(Value(kSwapped), 5);
}

TEST_F(RewriteAnswerTest, CountsWithoutTheReportAskedForAndSendsNone) {
  v1::RewriteOptions asked = ScopeOptions();
  asked.add_outputs(v1::OUTPUT_GRAPH);
  const absl::StatusOr<v1::RewriteResponse> response = Run(asked);
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->graph_def(), "graph bytes");
  EXPECT_FALSE(response->has_report());
  EXPECT_THAT(seen_.outputs(), ElementsAre(v1::OUTPUT_GRAPH));
  EXPECT_EQ(Value(kSwapped), 5);
}

TEST_F(RewriteAnswerTest, ReportAskedForAmongOthersIsLeftAsItIs) {
  v1::RewriteOptions asked = ScopeOptions();
  asked.add_outputs(v1::OUTPUT_REPORT);
  const absl::StatusOr<v1::RewriteResponse> response = Run(asked);
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->has_report());
  EXPECT_THAT(seen_.outputs(), ElementsAre(v1::OUTPUT_REPORT));
  EXPECT_EQ(seen_.decision_detail(), v1::DECISION_DETAIL_UNSPECIFIED);
}

TEST_F(RewriteAnswerTest, AnswerAboveOneMessageIsOutOfRangeAndNotCounted) {
  // The field of the graph is preceded by two bytes here, and by up to six if it is larger.
  const int64_t whole = Run(ScopeOptions())->ByteSizeLong() + 4;
  const double counted = Value(kSwapped);
  options_.max_response_bytes = whole;
  EXPECT_TRUE(Run(ScopeOptions()).ok()) << "the limit itself is allowed";
  options_.max_response_bytes = whole - 1;
  const absl::Status status = Run(ScopeOptions()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(core::GetErrorReason(status), v1::ERROR_REASON_RESULT_TOO_LARGE);
  EXPECT_THAT(std::string(status.message()), HasSubstr("StreamRewrite"));
  EXPECT_EQ(Value(kSwapped), 2 * counted);
}

TEST_F(RewriteAnswerTest, StreamSendsTheGraphApart) {
  options_.max_response_bytes = Run(ScopeOptions())->ByteSizeLong() - 1;
  EXPECT_TRUE(Run(ScopeOptions(), Framing::kStream).ok());
  options_.max_response_bytes = 10;  // "graph bytes" has 11.
  EXPECT_EQ(Run(ScopeOptions(), Framing::kStream).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(RewriteAnswerTest, ExceptionsDoNotEscape) {
  options_.rewrite = [](auto...) -> absl::StatusOr<v1::RewriteResponse> { throw std::bad_alloc(); };
  EXPECT_EQ(core::GetErrorReason(Run(ScopeOptions()).status()), v1::ERROR_REASON_OVERLOADED);
  options_.rewrite = [](auto...) -> absl::StatusOr<v1::RewriteResponse> {
    throw std::runtime_error("oops");
  };
  const absl::Status status = Run(ScopeOptions()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("oops"));
}

}  // namespace
}  // namespace spillway::server
