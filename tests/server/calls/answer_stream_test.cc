// Answers that are sent while they are computed, to clients that disappear, stall or are slow: none
// of them holds a worker for longer than the idle timeout. With stand-ins for the core.
#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "absl/time/clock.h"
#include "tests/server/calls/question_client.h"
#include "tests/server/server_fixture.h"

namespace spillway::server {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

class AnswerStreamTest : public ServerFixture {
 protected:
  void SetUp() override {}  // Each test starts its own server.

  // Explore reports sizes 1 to `first` immediately, and then one whenever `allowed` grows, until it
  // is stopped.
  ExploreFunction Counting(int first) {
    allowed_ = first;
    return [this](absl::string_view, const v1::ExploreOptions&, const v1::Limits&,
                  const core::StopToken& stop,
                  const core::ExploredSizeSink& on_size) -> absl::StatusOr<v1::ExploreReport> {
      running_ = true;
      for (int size = 1;; ++size) {
        while (size > allowed_) {
          if (stop.ShouldStop(1)) return Stopped(stop);
          absl::SleepFor(absl::Milliseconds(1));
        }
        if (stop.ShouldStop(1)) return Stopped(stop);
        v1::ExploredSize row;
        row.set_size(size);
        on_size(row);
      }
    };
  }

  // Inspect sends messages of 1 MiB until they are no longer accepted.
  InspectFunction Endless() {
    return [this](absl::string_view, const v1::InspectOptions&, const v1::Limits&,
                  const core::StopToken&, const core::InspectSink& sink) {
      v1::InspectResponse part;
      part.mutable_tensors()->add_tensors()->set_tensor(std::string(1 << 20, 't'));
      do {
        ++sent_;
      } while (sink(v1::InspectResponse(part)));
      stopped_ = true;
      return absl::OkStatus();
    };
  }

  absl::Status Stopped(const core::StopToken& stop) {
    stopped_ = true;
    return stop.status("explore");
  }

  using ExploreStream = grpc::ClientReaderWriter<v1::ExploreRequest, v1::ExploreResponse>;
  std::unique_ptr<ExploreStream> AskExplore(grpc::ClientContext* context) {
    auto stream = client_->stub().Explore(context);
    SendAll(*stream,
            Upload(Question<v1::ExploreRequest>(v1::ExploreOptions(), "graph"), {"graph"}));
    return stream;
  }

  using InspectStream = grpc::ClientReaderWriter<v1::InspectRequest, v1::InspectResponse>;
  std::unique_ptr<InspectStream> AskInspect(grpc::ClientContext* context) {
    auto stream = client_->stub().Inspect(context);
    SendAll(*stream,
            Upload(Question<v1::InspectRequest>(v1::InspectOptions(), "graph"), {"graph"}));
    return stream;
  }

  std::atomic<int> allowed_{0};
  std::atomic<int> sent_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopped_{false};
};

TEST_F(AnswerStreamTest, RowsComeWhileTheSearchGoesOn) {
  Options options = TestOptions();
  options.explore = Counting(1);
  Start(options);
  grpc::ClientContext context;
  const auto stream = AskExplore(&context);
  v1::ExploreResponse row;
  for (int size = 1; size <= 3; ++size) {
    ASSERT_TRUE(stream->Read(&row));
    EXPECT_EQ(row.size().size(), size);
    EXPECT_FALSE(stopped_);
    allowed_ = size + 1;
  }
  context.TryCancel();
  EXPECT_EQ(ReadAll(*stream).status.error_code(), StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return stopped_.load(); })) << "the work must end too";
  EXPECT_TRUE(Eventually([&] { return Requests("Explore", "CANCELLED", "none") == 1; }));
}

// The real search, which takes seconds for this many sizes.
TEST_F(AnswerStreamTest, CancellationInTheMiddleStopsTheSearch) {
  Start(TestOptions());
  const std::string graph = SmallGraph();
  v1::ExploreOptions asked;
  asked.set_swapping(true);
  for (int size = 1; size <= 1000; ++size) asked.add_sizes(size);
  grpc::ClientContext context;
  const auto stream = client_->stub().Explore(&context);
  SendAll(*stream, Upload(Question<v1::ExploreRequest>(asked, graph), {graph}, 1 << 20));
  v1::ExploreResponse row;
  ASSERT_TRUE(stream->Read(&row));
  EXPECT_EQ(row.size().size(), 1);
  context.TryCancel();
  const absl::Time cancelled_at = absl::Now();
  const auto rest = ReadAll(*stream);
  EXPECT_EQ(rest.status.error_code(), StatusCode::CANCELLED);
  EXPECT_LT(rest.messages.size(), 900u) << "or there was nothing to cancel";
  EXPECT_TRUE(NothingInFlight());
  // A stride of the stop token takes a tenth of a millisecond, and a simulation several: even a
  // busy machine stops long before the rest of the search would be done.
  EXPECT_LT(absl::Now() - cancelled_at, absl::Seconds(5));
  EXPECT_EQ(Requests("Explore", "CANCELLED", "none"), 1);
}

TEST_F(AnswerStreamTest, DeadlineReachesTheSearch) {
  Options options = TestOptions();
  options.explore = Counting(2);
  Start(options);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(200)));
  const auto stream = AskExplore(&context);
  const auto answers = ReadAll(*stream);
  EXPECT_EQ(answers.messages.size(), 2u) << "what was found before the deadline";
  EXPECT_EQ(answers.status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Eventually([&] { return stopped_.load(); }));
}

TEST_F(AnswerStreamTest, ClientThatNeverReadsHoldsNoWorkerForLong) {
  Options options = TestOptions();
  options.idle_timeout = absl::Seconds(60);
  options.clock = &clock_;
  options.inspect = Endless();
  Start(options);
  grpc::ClientContext context;
  const auto stream = AskInspect(&context);
  ASSERT_TRUE(Eventually([&] { return sent_ > 0; }));
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(options.idle_timeout);
    return stopped_.load();
  }));
  // The messages that flow control lets through, and one that waits: nothing accumulates.
  EXPECT_LT(sent_, 64);
  EXPECT_TRUE(NothingInFlight());
  EXPECT_EQ(ReadAll(*stream).status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(Requests("Inspect", "CANCELLED", "none"), 1);
}

// Each message is taken before the idle timeout, but the worker must still be released.
TEST_F(AnswerStreamTest, ClientThatReadsSlowlyHoldsNoWorkerForLong) {
  Options options = TestOptions();
  options.idle_timeout = absl::Seconds(60);
  options.clock = &clock_;
  options.inspect = Endless();
  Start(options);
  grpc::ClientContext context;
  const auto stream = AskInspect(&context);
  v1::InspectResponse part;
  while (!stopped_ && stream->Read(&part)) clock_.Advance(options.idle_timeout / 200);
  EXPECT_TRUE(stopped_);
  const grpc::Status status = ReadAll(*stream).status;
  EXPECT_EQ(status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(InfoOf(status).reason(), "STOPPED");
  EXPECT_THAT(status.error_message(), HasSubstr("does not read the answer fast enough"));
}

TEST_F(AnswerStreamTest, ClientThatVanishesStopsTheWork) {
  Options options = TestOptions();
  options.inspect = Endless();
  Start(options);
  auto context = std::make_unique<grpc::ClientContext>();
  auto stream = AskInspect(context.get());
  v1::InspectResponse part;
  ASSERT_TRUE(stream->Read(&part));
  stream.reset();  // Drops the call, then the connection, without notice.
  context.reset();
  client_.reset();
  EXPECT_TRUE(Eventually([&] { return stopped_.load(); }));
  EXPECT_TRUE(NothingInFlight());
}

TEST_F(AnswerStreamTest, ADrainCancelsASearchThatGoesOn) {
  Options options = TestOptions();
  options.explore = Counting(1);
  options.drain_timeout = absl::Milliseconds(50);
  Start(options);
  grpc::ClientContext context;
  const auto stream = AskExplore(&context);
  v1::ExploreResponse row;
  ASSERT_TRUE(stream->Read(&row));
  EXPECT_FALSE(server_->Drain()) << "something had to be cancelled";
  EXPECT_TRUE(stopped_);
  EXPECT_FALSE(ReadAll(*stream).status.ok());
}

TEST_F(AnswerStreamTest, ADrainLetsASearchFinish) {
  Options options = TestOptions();
  options.drain_timeout = kPatience;
  options.explore = [this](auto...) -> absl::StatusOr<v1::ExploreReport> {
    running_ = true;
    while (allowed_ == 0) absl::SleepFor(absl::Milliseconds(1));
    v1::ExploreReport report;
    report.set_largest_fitting_size(7);
    return report;
  };
  Start(options);
  grpc::ClientContext context;
  const auto stream = AskExplore(&context);
  ASSERT_TRUE(Eventually([&] { return running_.load(); }));
  std::future<bool> drained = std::async(std::launch::async, [&] { return server_->Drain(); });
  // Draining has begun once a new question is refused.
  EXPECT_TRUE(Eventually([&] {
    const auto refused =
        Inspect(*client_, {Question<v1::InspectRequest>(v1::InspectOptions(), "graph")});
    return InfoOf(refused.status).reason() == "STOPPED" &&
           refused.status.error_code() == StatusCode::UNAVAILABLE;
  }));
  allowed_ = 1;
  const auto answers = ReadAll(*stream);
  EXPECT_TRUE(answers.status.ok()) << answers.status.error_message();
  ASSERT_EQ(answers.messages.size(), 1u);
  EXPECT_EQ(answers.messages[0].report().largest_fitting_size(), 7);
  EXPECT_TRUE(drained.get());
}

TEST_F(AnswerStreamTest, ExceptionsOfTheCoreAreErrors) {
  Options options = TestOptions();
  options.inspect = [](auto...) -> absl::Status { throw std::bad_alloc(); };
  options.explore = [](auto...) -> absl::StatusOr<v1::ExploreReport> {
    throw std::runtime_error("oops");
  };
  Start(options);
  grpc::ClientContext inspect_context, explore_context;
  const grpc::Status inspected = ReadAll(*AskInspect(&inspect_context)).status;
  EXPECT_EQ(InfoOf(inspected).reason(), "OVERLOADED");
  const grpc::Status explored = ReadAll(*AskExplore(&explore_context)).status;
  EXPECT_EQ(InfoOf(explored).reason(), "INTERNAL");
  EXPECT_THAT(explored.error_message(), HasSubstr("oops"));
}

}  // namespace
}  // namespace spillway::server
