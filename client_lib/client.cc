#include "spillway/client.h"

#include <new>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
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

// An exception would end the thread without a word to `done`.
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

}  // namespace

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

absl::StatusOr<v1::RewriteResponse> Client::Rewrite(absl::string_view graph_def,
                                                    const v1::RewriteOptions& options,
                                                    const CallOptions& call) const {
  return connection_->Rewrite(graph_def, options, call);
}

std::future<absl::StatusOr<v1::RewriteResponse>> Client::RewriteAsync(
    std::string graph_def, v1::RewriteOptions options, CallOptions call,
    std::function<void(const absl::StatusOr<v1::RewriteResponse>&)> done) const {
  absl::Status failure;
  try {
    return std::async(
        std::launch::async, [connection = connection_, graph_def = std::move(graph_def),
                             options = std::move(options), call = std::move(call), done] {
          Result result = Guarded([&] { return connection->Rewrite(graph_def, options, call); });
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

absl::StatusOr<v1::GetCapabilitiesResponse> Client::GetCapabilities(const CallOptions& call) const {
  return connection_->GetCapabilities(call);
}

absl::StatusOr<ServingStatus> Client::CheckHealth(absl::string_view service,
                                                  const CallOptions& call) const {
  return connection_->CheckHealth(service, call);
}

v1::ErrorInfo ErrorInfoOf(const absl::Status& status) { return core::GetErrorInfo(status); }

}  // namespace spillway
