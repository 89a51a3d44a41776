#include "client_lib/internal/channel.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "client_lib/internal/addresses.h"
#include "client_lib/internal/service_names.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/pem.h"
#include "rewrite_core/base/small_file.h"

namespace spillway::internal {
namespace {

constexpr char kAuthorities[] = "the certificate authorities";
constexpr char kCertificate[] = "the client certificate";
constexpr char kKey[] = "the key of the client certificate";

// A server that disappears without closing its connection is detected after the sum of these,
// during a call. spillwayd accepts pings 10 s apart.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// Used if there is another server to try: less than gRPC's 20 s for an unresponsive address.
constexpr int kConnectTimeoutMs = 5'000;

absl::Status Fault(const char* what, const std::string& file, absl::string_view why) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat(what, " ", core::Quoted(file), ": ", why),
                            {{"file", file}});
}

// Reads the file into `content`; leaves it unchanged if no file is given.
absl::Status Read(const char* what, const std::string& file, std::string* content) {
  if (file.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> read = core::ReadSmallFile(file, core::kMaxPemFileBytes);
  if (!read.ok()) return Fault(what, file, read.status().message());
  *content = *std::move(read);
  return absl::OkStatus();
}

// Checks that the files have the expected contents; `pem` receives them.
absl::Status Check(const TlsOptions& tls, const grpc::SslCredentialsOptions& pem) {
  if (!tls.ca_file.empty()) {
    const absl::Status authorities = core::CheckCertificates(pem.pem_root_certs);
    if (!authorities.ok()) return Fault(kAuthorities, tls.ca_file, authorities.message());
  }
  if (tls.cert_file.empty()) return absl::OkStatus();
  const auto fault =
      core::FindKeyPairFault(pem.pem_cert_chain, pem.pem_private_key, core::Quoted(tls.cert_file));
  if (!fault.has_value()) return absl::OkStatus();
  return fault->of_key ? Fault(kKey, tls.key_file, fault->what)
                       : Fault(kCertificate, tls.cert_file, fault->what);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const absl::optional<TlsOptions>& tls) {
  if (!tls.has_value()) return grpc::InsecureChannelCredentials();
  if (tls->cert_file.empty() != tls->key_file.empty()) {
    return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                              "a client certificate and its key need each other; give both or none",
                              {});
  }
  grpc::SslCredentialsOptions pem;
  absl::Status status = Read(kAuthorities, tls->ca_file, &pem.pem_root_certs);
  status.Update(Read(kCertificate, tls->cert_file, &pem.pem_cert_chain));
  status.Update(Read(kKey, tls->key_file, &pem.pem_private_key));
  if (status.ok()) status = Check(*tls, pem);
  if (!status.ok()) return status;
  return grpc::SslCredentials(pem);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const RemoteOptions& options,
                                                           const std::string& address,
                                                           Routing routing) {
  const auto credentials = MakeCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  grpc::ChannelArguments arguments;
  // A report that lists every decision exceeds gRPC's default of 4 MiB, and the server's answers
  // are trusted.
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  // gRPC would share connections, and their backoff, between channels of one target.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // A rewrite may take minutes during which neither side sends anything.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Retries are the client's own (retry.h). With gRPC's retry filter, a call that ends by its
  // deadline or a cancellation between the headers and the first message of its answer never
  // returns, in gRPC 1.51 (retry_filter.cc, MaybeAddClosureForRecvInitialMetadataCallback leaves a
  // null closure in the pending batch, with which PendingBatchesFail holds the call combiner for
  // ever).
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Calls to this machine bypass http_proxy.
  if (StaysOnMachine(address)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (routing == Routing::kHealthyServers) {
    arguments.SetServiceConfigJSON(absl::StrCat(
        R"({"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":")",
        kRewriteService, R"("}})"));
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  }
  return grpc::CreateCustomChannel(address, *credentials, arguments);
}

}  // namespace spillway::internal
