// The functions of spillway.h. No protobuf, gRPC or Abseil here: see call_table.h.
#include "spillway/spillway.h"

#include <new>

#include "client_lib/c_api/call_table.h"
#include "client_lib/c_api/handles.h"

namespace {

using spillway::c_api::CallTable;

// Null if the client library cannot be loaded and there is no memory to report it.
const CallTable* Table(spillway_status** failure) noexcept {
  try {
    return spillway::c_api::LoadCallTable(failure);
  } catch (const std::bad_alloc&) {
    constexpr int32_t kResourceExhausted = 8;  // gRPC's number.
    static spillway_status no_memory{kResourceExhausted, "no memory", "", {}, true};
    *failure = &no_memory;
    return nullptr;
  }
}

const CallTable* Table() {
  spillway_status* failure = nullptr;
  return Table(&failure);
}

// Calls the table entry for a function that returns a status.
template <typename Entry, typename... Arguments>
spillway_status* Forward(Entry CallTable::*entry, Arguments... arguments) {
  spillway_status* failure = nullptr;
  const CallTable* table = Table(&failure);
  return table == nullptr ? failure : (table->*entry)(arguments...);
}

}  // namespace

int32_t spillway_c_api_version(void) { return SPILLWAY_C_API_VERSION; }

const char* spillway_version(void) { return SPILLWAY_VERSION; }

int32_t spillway_status_code(const spillway_status* status) {
  return status == nullptr ? 0 : status->code;
}

const char* spillway_status_message(const spillway_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}

const char* spillway_status_reason(const spillway_status* status) {
  return status == nullptr ? "" : status->reason.c_str();
}

size_t spillway_status_metadata_count(const spillway_status* status) {
  return status == nullptr ? 0 : status->metadata.size();
}

const char* spillway_status_metadata_key(const spillway_status* status, size_t index) {
  if (index >= spillway_status_metadata_count(status)) return nullptr;
  return status->metadata[index].first.c_str();
}

const char* spillway_status_metadata_value(const spillway_status* status, size_t index) {
  if (index >= spillway_status_metadata_count(status)) return nullptr;
  return status->metadata[index].second.c_str();
}

void spillway_status_free(spillway_status* status) {
  if (status != nullptr && !status->permanent) Table()->status_free(status);
}

const char* spillway_buffer_data(const spillway_buffer* buffer) {
  return buffer == nullptr ? "" : buffer->bytes.c_str();
}

size_t spillway_buffer_size(const spillway_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->bytes.size();
}

void spillway_buffer_free(spillway_buffer* buffer) {
  if (buffer != nullptr) Table()->buffer_free(buffer);
}

spillway_client_options* spillway_client_options_new(void) {
  const CallTable* table = Table();
  return table == nullptr ? nullptr : table->client_options_new();
}

void spillway_client_options_free(spillway_client_options* options) {
  if (options != nullptr) Table()->client_options_free(options);
}

spillway_status* spillway_client_options_set_target(spillway_client_options* options,
                                                    const char* target) {
  return Forward(&CallTable::client_options_set_target, options, target);
}

spillway_status* spillway_client_options_set_unary_max_bytes(spillway_client_options* options,
                                                             int64_t bytes) {
  return Forward(&CallTable::client_options_set_unary_max_bytes, options, bytes);
}

spillway_status* spillway_client_options_set_chunk_bytes(spillway_client_options* options,
                                                         int64_t bytes) {
  return Forward(&CallTable::client_options_set_chunk_bytes, options, bytes);
}

spillway_status* spillway_client_options_set_max_attempts(spillway_client_options* options,
                                                          int32_t attempts) {
  return Forward(&CallTable::client_options_set_max_attempts, options, attempts);
}

spillway_status* spillway_client_options_set_tls(spillway_client_options* options,
                                                 const char* ca_file, const char* cert_file,
                                                 const char* key_file, const char* server_name) {
  return Forward(&CallTable::client_options_set_tls, options, ca_file, cert_file, key_file,
                 server_name);
}

spillway_status* spillway_client_options_set_token_file(spillway_client_options* options,
                                                        const char* file) {
  return Forward(&CallTable::client_options_set_token_file, options, file);
}

spillway_status* spillway_client_options_set_token_in_clear(spillway_client_options* options,
                                                            int32_t allowed) {
  return Forward(&CallTable::client_options_set_token_in_clear, options, allowed);
}

spillway_status* spillway_client_options_set_hedge_after_ms(spillway_client_options* options,
                                                            int64_t milliseconds) {
  return Forward(&CallTable::client_options_set_hedge_after_ms, options, milliseconds);
}

spillway_status* spillway_client_new(const spillway_client_options* options,
                                     spillway_client** client) {
  return Forward(&CallTable::client_new, options, client);
}

void spillway_client_free(spillway_client* client) {
  if (client != nullptr) Table()->client_free(client);
}

spillway_call* spillway_call_new(void) {
  const CallTable* table = Table();
  return table == nullptr ? nullptr : table->call_new();
}

void spillway_call_free(spillway_call* call) {
  if (call != nullptr) Table()->call_free(call);
}

spillway_status* spillway_call_set_timeout_ms(spillway_call* call, int64_t milliseconds) {
  return Forward(&CallTable::call_set_timeout_ms, call, milliseconds);
}

spillway_status* spillway_call_set_keep_best(spillway_call* call, int32_t keep) {
  return Forward(&CallTable::call_set_keep_best, call, keep);
}

spillway_status* spillway_call_set_request_id(spillway_call* call, const char* id) {
  return Forward(&CallTable::call_set_request_id, call, id);
}

spillway_status* spillway_call_set_traceparent(spillway_call* call, const char* traceparent) {
  return Forward(&CallTable::call_set_traceparent, call, traceparent);
}

spillway_status* spillway_call_set_token(spillway_call* call, const char* token) {
  return Forward(&CallTable::call_set_token, call, token);
}

void spillway_call_cancel(spillway_call* call) {
  if (call != nullptr) Table()->call_cancel(call);
}

spillway_status* spillway_call_set_progress(spillway_call* call, spillway_progress_fn progress,
                                            void* user_data) {
  return Forward(&CallTable::call_set_progress, call, progress, user_data);
}

spillway_status* spillway_rewrite_graph(spillway_client* client, const void* graph,
                                        size_t graph_size, const void* options, size_t options_size,
                                        spillway_call* call, spillway_buffer** graph_out,
                                        spillway_buffer** report_out) {
  return Forward(&CallTable::rewrite_graph, client, graph, graph_size, options, options_size, call,
                 graph_out, report_out);
}

spillway_status* spillway_rewrite(spillway_client* client, const void* request, size_t request_size,
                                  spillway_call* call, spillway_buffer** response) {
  return Forward(&CallTable::rewrite, client, request, request_size, call, response);
}

spillway_status* spillway_get_capabilities(spillway_client* client, spillway_call* call,
                                           spillway_buffer** response) {
  return Forward(&CallTable::get_capabilities, client, call, response);
}

spillway_status* spillway_check_health(spillway_client* client, const char* service,
                                       spillway_call* call, int32_t* health) {
  return Forward(&CallTable::check_health, client, service, call, health);
}

spillway_status* spillway_inspect(spillway_client* client, const void* graph, size_t graph_size,
                                  const void* options, size_t options_size, spillway_call* call,
                                  spillway_part_fn on_tensors, void* user_data,
                                  spillway_buffer** summary) {
  return Forward(&CallTable::inspect, client, graph, graph_size, options, options_size, call,
                 on_tensors, user_data, summary);
}

spillway_status* spillway_simulate(spillway_client* client, const void* graph, size_t graph_size,
                                   const void* options, size_t options_size, spillway_call* call,
                                   spillway_buffer** report) {
  return Forward(&CallTable::simulate, client, graph, graph_size, options, options_size, call,
                 report);
}

spillway_status* spillway_explore(spillway_client* client, const void* graph, size_t graph_size,
                                  const void* options, size_t options_size, spillway_call* call,
                                  spillway_part_fn on_size, void* user_data,
                                  spillway_buffer** report) {
  return Forward(&CallTable::explore, client, graph, graph_size, options, options_size, call,
                 on_size, user_data, report);
}

spillway_status* spillway_diff(spillway_client* client, const void* a, size_t a_size, const void* b,
                               size_t b_size, spillway_call* call, spillway_buffer** diff) {
  return Forward(&CallTable::diff, client, a, a_size, b, b_size, call, diff);
}

spillway_status* spillway_draw(const char* name, const void* report, size_t report_size,
                               const void* before, size_t before_size, const char* format,
                               const char* theme, const char* title, spillway_buffer** picture) {
  return Forward(&CallTable::draw, name, report, report_size, before, before_size, format, theme,
                 title, picture);
}

spillway_status* spillway_text(const char* name, const void* message, size_t message_size,
                               spillway_buffer** text) {
  return Forward(&CallTable::text, name, message, message_size, text);
}

spillway_status* spillway_check(const void* report, size_t report_size, const void* run_metadata,
                                size_t run_metadata_size, spillway_buffer** check) {
  return Forward(&CallTable::check, report, report_size, run_metadata, run_metadata_size, check);
}

spillway_status* spillway_find_gpu_memory(int64_t* bytes) {
  return Forward(&CallTable::find_gpu_memory, bytes);
}

spillway_status* spillway_message_from_json(const char* name, const char* json, size_t json_size,
                                            spillway_buffer** message) {
  return Forward(&CallTable::message_from_json, name, json, json_size, message);
}

spillway_status* spillway_message_to_json(const char* name, const void* message,
                                          size_t message_size, spillway_buffer** json) {
  return Forward(&CallTable::message_to_json, name, message, message_size, json);
}
