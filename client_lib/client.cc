#include "spillway/client.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client_lib/internal/this_machine.h"
#include "rewrite_core/base/error.h"

namespace spillway {
namespace {

using Result = absl::StatusOr<v1::RewriteResponse>;

absl::Status NoThread(const std::system_error& error) {
  return absl::ResourceExhaustedError(absl::StrCat("no thread could be started for the call (",
                                                   error.what(), "); wait until others are done"));
}

absl::Status OutOfMemory() {
  return absl::ResourceExhaustedError("there is not enough memory for the call");
}

// An exception would end the thread without calling `done`.
template <typename Call>
auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::system_error& error) {
    return NoThread(error);
  }
}

// Calls `call` with the options; if they leave the machine open, with that of this one's GPUs.
template <typename Options, typename Call>
auto OnMachine(const Options& options, const CallOptions& how, const Call& call)
    -> decltype(call(options)) {
  if (!internal::NeedsMachine(options)) return call(options);
  Options complete = options;
  const absl::StatusOr<std::string> filled = internal::FillHardware(
      internal::MachineOfProcess(std::min(internal::kNvidiaSmiTime, how.timeout)),
      complete.mutable_step()->mutable_hardware());
  if (!filled.ok()) return filled.status();
  return call(complete);
}

absl::StatusOr<v1::RewriteResponse> RewriteBy(Connection& connection, absl::string_view graph_def,
                                              const v1::RewriteOptions& options,
                                              const CallOptions& call) {
  return OnMachine(options, call, [&](const v1::RewriteOptions& complete) {
    return connection.Rewrite(graph_def, complete, call);
  });
}

}  // namespace

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

absl::StatusOr<v1::RewriteResponse> Client::Rewrite(absl::string_view graph_def,
                                                    const v1::RewriteOptions& options,
                                                    const CallOptions& call) const {
  return RewriteBy(*connection_, graph_def, options, call);
}

std::future<absl::StatusOr<v1::RewriteResponse>> Client::RewriteAsync(
    std::string graph_def, v1::RewriteOptions options, CallOptions call,
    std::function<void(const absl::StatusOr<v1::RewriteResponse>&)> done) const {
  absl::Status failure;
  try {
    return std::async(
        std::launch::async, [connection = connection_, graph_def = std::move(graph_def),
                             options = std::move(options), call = std::move(call), done] {
          Result result = Guarded([&] { return RewriteBy(*connection, graph_def, options, call); });
          if (done) done(result);
          return result;
        });
  } catch (const std::bad_alloc&) {
    failure = OutOfMemory();
  } catch (const std::system_error& error) {
    failure = NoThread(error);
  }
  std::promise<Result> promise;
  Result result = failure;
  if (done) done(result);
  promise.set_value(std::move(result));
  return promise.get_future();
}

absl::StatusOr<v1::RewriteResponse> Client::Strip(absl::string_view graph_def,
                                                  const CallOptions& call) const {
  v1::RewriteOptions options;
  options.mutable_strip();
  return connection_->Rewrite(graph_def, options, call);
}

absl::StatusOr<v1::RewriteResponse> Client::Apply(absl::string_view graph_def, const v1::Plan& plan,
                                                  const CallOptions& call) const {
  v1::RewriteOptions options;
  plan.SerializeToString(options.mutable_apply()->mutable_plan());
  return RewriteBy(*connection_, graph_def, options, call);
}

absl::StatusOr<v1::GraphSummary> Client::Inspect(absl::string_view graph_def,
                                                 const v1::InspectOptions& options,
                                                 const CallOptions& call) const {
  if (!options.tensors()) return connection_->Inspect(graph_def, options, nullptr, call);
  v1::InspectOptions summary_only = options;
  summary_only.clear_tensors();
  return connection_->Inspect(graph_def, summary_only, nullptr, call);
}

absl::StatusOr<v1::GraphSummary> Client::InspectTensors(absl::string_view graph_def,
                                                        const v1::InspectOptions& options,
                                                        const TensorsCallback& on_tensors,
                                                        const CallOptions& call) const {
  v1::InspectOptions with_tensors = options;
  with_tensors.set_tensors(true);
  return connection_->Inspect(graph_def, with_tensors, on_tensors, call);
}

absl::StatusOr<v1::SimulateReport> Client::Simulate(absl::string_view graph_def,
                                                    const v1::SimulateOptions& options,
                                                    const CallOptions& call) const {
  return OnMachine(options, call, [&](const v1::SimulateOptions& complete) {
    return connection_->Simulate(graph_def, complete, call);
  });
}

absl::StatusOr<v1::ExploreReport> Client::Explore(absl::string_view graph_def,
                                                  const v1::ExploreOptions& options,
                                                  const SizeCallback& on_size,
                                                  const CallOptions& call) const {
  return OnMachine(options, call, [&](const v1::ExploreOptions& complete) {
    return connection_->Explore(graph_def, complete, on_size, call);
  });
}

absl::StatusOr<v1::GraphDiff> Client::Diff(absl::string_view graph_a, absl::string_view graph_b,
                                           const CallOptions& call) const {
  return connection_->Diff(graph_a, graph_b, call);
}

absl::StatusOr<v1::GetCapabilitiesResponse> Client::GetCapabilities(const CallOptions& call) const {
  return connection_->GetCapabilities(call);
}

absl::StatusOr<ServingStatus> Client::CheckHealth(absl::string_view service,
                                                  const CallOptions& call) const {
  return connection_->CheckHealth(service, call);
}

v1::ErrorInfo ErrorInfoOf(const absl::Status& status) { return core::GetErrorInfo(status); }

v1::ErrorReason ErrorReasonOf(const absl::Status& status) { return core::GetErrorReason(status); }

}  // namespace spillway
