// Rewrites a graph that a program holds as a protobuf message, such as tensorflow::GraphDef, before
// its session is made. Header-only, C++11; needs only spillway.h and the standard library, not
// protobuf, Abseil or TensorFlow: any class with SerializeAsString and ParseFromArray works.
//
//   #include "spillway/rewrite_message.h"
//
//   tensorflow::GraphDef graph = ...;
//   spillway::RewriteMessageOptions options;
//   options.target = "host:7070";  // Without it: in this process.
//   spillway::RewriteMessageResult result = spillway::RewriteMessage(options, &graph);
//   if (!result.ok()) LOG(WARNING) << result.message << "; training without swaps";
//   session->Create(graph);        // The rewritten graph, or on any error the original.
//
// Link with libspillway. Thread-safe except for the message.
#ifndef SPILLWAY_REWRITE_MESSAGE_H_
#define SPILLWAY_REWRITE_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "spillway/spillway.h"

namespace spillway {

struct RewriteMessageOptions {
  // The server, `host:port`. Empty: in this process.
  std::string target;
  // Whether to use TLS, and with which files: see spillway_client_options_set_tls. An empty string
  // stands for NULL there; any non-empty one implies `tls`.
  bool tls = false;
  std::string tls_ca_file;
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_server_name;
  // spillway.v1.RewriteOptions as JSON. Empty: the defaults, which plan for this machine's GPUs
  // (nvidia-smi) and need batch_size if the graph leaves it open:
  // {"step": {"batch_size": 256, "hardware": {"preset": "t4"}}}.
  std::string options_json;
  // The call fails with DEADLINE_EXCEEDED after this time. Negative: no limit.
  std::int64_t timeout_ms = -1;
};

struct RewriteMessageResult {
  // 0: success. Otherwise the gRPC status code, and the caller's message is unchanged.
  std::int32_t code = 0;
  // A sentence for people, and an ErrorReason of error.proto without its prefix (or "").
  std::string message;
  std::string reason;
  // spillway.v1.RewriteReport as JSON: swapped tensors and reasons.
  std::string report_json;

  bool ok() const { return code == 0; }
};

namespace internal {

struct CFree {
  void operator()(spillway_status* status) const { spillway_status_free(status); }
  void operator()(spillway_buffer* buffer) const { spillway_buffer_free(buffer); }
  void operator()(spillway_client* client) const { spillway_client_free(client); }
  void operator()(spillway_client_options* options) const { spillway_client_options_free(options); }
  void operator()(spillway_call* call) const { spillway_call_free(call); }
};

template <typename Handle>
using COwner = std::unique_ptr<Handle, CFree>;

// Takes ownership of the output of a function of the C API.
inline COwner<spillway_buffer> Own(spillway_buffer* buffer) {
  return COwner<spillway_buffer>(buffer);
}

inline RewriteMessageResult ToResult(spillway_status* status) {
  const COwner<spillway_status> owner(status);
  RewriteMessageResult result;
  result.code = spillway_status_code(status);
  result.message = spillway_status_message(status);
  result.reason = spillway_status_reason(status);
  return result;
}

// The part that does not depend on the type of the message: bytes in, bytes out.
inline RewriteMessageResult RewriteBytes(const RewriteMessageOptions& options,
                                         const std::string& graph,
                                         COwner<spillway_buffer>* rewritten) {
  spillway_status* status = nullptr;
  const COwner<spillway_client_options> where(spillway_client_options_new());
  status = spillway_client_options_set_target(where.get(), options.target.c_str());
  if (status != nullptr) return ToResult(status);
  // Naming a CA or a certificate implies TLS.
  if (options.tls || !options.tls_ca_file.empty() || !options.tls_cert_file.empty() ||
      !options.tls_key_file.empty() || !options.tls_server_name.empty()) {
    status = spillway_client_options_set_tls(
        where.get(), options.tls_ca_file.c_str(), options.tls_cert_file.c_str(),
        options.tls_key_file.c_str(), options.tls_server_name.c_str());
    if (status != nullptr) return ToResult(status);
  }
  spillway_client* client = nullptr;
  status = spillway_client_new(where.get(), &client);
  if (status != nullptr) return ToResult(status);
  const COwner<spillway_client> client_owner(client);

  const COwner<spillway_call> call(spillway_call_new());
  if (options.timeout_ms >= 0) {
    status = spillway_call_set_timeout_ms(call.get(), options.timeout_ms);
    if (status != nullptr) return ToResult(status);
  }
  spillway_buffer* parsed = nullptr;
  if (!options.options_json.empty()) {
    status = spillway_message_from_json("RewriteOptions", options.options_json.data(),
                                        options.options_json.size(), &parsed);
    if (status != nullptr) return ToResult(status);
  }
  const COwner<spillway_buffer> parsed_owner = Own(parsed);

  spillway_buffer* graph_out = nullptr;
  spillway_buffer* report_out = nullptr;
  status =
      spillway_rewrite_graph(client, graph.data(), graph.size(), spillway_buffer_data(parsed),
                             spillway_buffer_size(parsed), call.get(), &graph_out, &report_out);
  if (status != nullptr) return ToResult(status);
  *rewritten = Own(graph_out);
  const COwner<spillway_buffer> report = Own(report_out);

  spillway_buffer* json = nullptr;
  status = spillway_message_to_json("RewriteReport", spillway_buffer_data(report_out),
                                    spillway_buffer_size(report_out), &json);
  if (status != nullptr) return ToResult(status);
  const COwner<spillway_buffer> json_owner = Own(json);
  RewriteMessageResult result;
  result.report_json.assign(spillway_buffer_data(json), spillway_buffer_size(json));
  return result;
}

}  // namespace internal

// Replaces `*graph` with the rewritten graph, or leaves it unchanged on an error. For the errors,
// see RewriteService.Rewrite (rewrite_service.proto).
template <typename Message>
RewriteMessageResult RewriteMessage(const RewriteMessageOptions& options, Message* graph) {
  internal::COwner<spillway_buffer> rewritten;
  RewriteMessageResult result =
      internal::RewriteBytes(options, graph->SerializeAsString(), &rewritten);
  if (!result.ok()) return result;
  Message parsed;
  if (!parsed.ParseFromArray(spillway_buffer_data(rewritten.get()),
                             static_cast<int>(spillway_buffer_size(rewritten.get())))) {
    result.code = 13;  // INTERNAL, as gRPC numbers it.
    result.reason = "INTERNAL";
    result.message = "the rewritten graph cannot be parsed as the message that was given";
    return result;
  }
  *graph = std::move(parsed);
  return result;
}

}  // namespace spillway

#endif  // SPILLWAY_REWRITE_MESSAGE_H_
