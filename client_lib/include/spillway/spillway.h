/* The C API of Spillway: rewrites TensorFlow graphs so that tensors wait in host memory, and
   reports what a graph contains, whether a step of it fits a GPU, and how large it may be. C99.

     spillway_client* client = NULL;
     spillway_buffer* graph = NULL;
     spillway_status* status = spillway_client_new(NULL, &client);   (NULL: in this process)
     if (status == NULL) {
       status = spillway_rewrite_graph(client, bytes, size, NULL, 0, NULL, &graph, NULL);
     }
     if (status != NULL) {
       fputs(spillway_status_message(status), stderr);
       spillway_status_free(status);
     }

   The library exports only spillway_* symbols, so it may share a process with TensorFlow, which has
   its own protobuf, Abseil and gRPC.

   Rules
   - A function that returns spillway_status* returns NULL on success. Otherwise the caller frees
     the status, and no output was written.
   - Handles are opaque. The caller owns a handle from a _new function or an output and frees it
     with the matching _free, which accepts NULL. A handle must not be freed while another thread
     uses it.
   - Inputs are read only during the call and never kept. `size` is in bytes.
   - NULL for a required argument is an error (INVALID_ARGUMENT, BAD_OPTION), never a crash. No C++
     exception escapes.
   - Messages are serialized messages of spillway.v1 (see the .proto files). A caller without
     protobuf uses spillway_message_from_json and spillway_message_to_json.

   Threads: clients and calls may be used by any number of threads concurrently. Client options,
   statuses and buffers allow concurrent reads, or one writer.

   Compatibility: a function keeps its name, arguments and meaning as long as the number in the
   library's name stays the same (libspillway.so.0). New functions raise SPILLWAY_C_API_VERSION. */
#ifndef SPILLWAY_SPILLWAY_H_
#define SPILLWAY_SPILLWAY_H_

#include <stddef.h>
#include <stdint.h>

#include "spillway/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. That of the library may be higher, never lower. */
#define SPILLWAY_C_API_VERSION 8
SPILLWAY_EXPORT int32_t spillway_c_api_version(void);

/* The library's version, `MAJOR.MINOR.PATCH`. */
SPILLWAY_EXPORT const char* spillway_version(void);

/* ---- Errors. Every accessor takes NULL for "OK". Strings live as long as the status. */

typedef struct spillway_status spillway_status;

/* The gRPC status code: 0 OK, 1 CANCELLED, 3 INVALID_ARGUMENT, 4 DEADLINE_EXCEEDED,
   8 RESOURCE_EXHAUSTED, 9 FAILED_PRECONDITION, 11 OUT_OF_RANGE, 13 INTERNAL, 14 UNAVAILABLE, ... */
SPILLWAY_EXPORT int32_t spillway_status_code(const spillway_status* status);
/* A sentence for people. "" if OK. */
SPILLWAY_EXPORT const char* spillway_status_message(const spillway_status* status);
/* For programs: an ErrorReason of error.proto without its prefix, e.g. "DANGLING_INPUT". Stable. ""
   if there is none (an unreachable server). */
SPILLWAY_EXPORT const char* spillway_status_reason(const spillway_status* status);
/* The names and numbers in the message, sorted by key. NULL for an index out of range. */
SPILLWAY_EXPORT size_t spillway_status_metadata_count(const spillway_status* status);
SPILLWAY_EXPORT const char* spillway_status_metadata_key(const spillway_status* status,
                                                         size_t index);
SPILLWAY_EXPORT const char* spillway_status_metadata_value(const spillway_status* status,
                                                           size_t index);
SPILLWAY_EXPORT void spillway_status_free(spillway_status* status);

/* ---- Bytes returned by the library. */

typedef struct spillway_buffer spillway_buffer;

/* A zero byte follows the last one, so text may be read as a C string. "" and 0 for NULL. */
SPILLWAY_EXPORT const char* spillway_buffer_data(const spillway_buffer* buffer);
SPILLWAY_EXPORT size_t spillway_buffer_size(const spillway_buffer* buffer);
SPILLWAY_EXPORT void spillway_buffer_free(spillway_buffer* buffer);

/* ---- Where calls go: to the core in this process, or to a server (spillwayd). */

typedef struct spillway_client_options spillway_client_options;

/* Returns NULL only if spillway_client_new would fail, too. */
SPILLWAY_EXPORT spillway_client_options* spillway_client_options_new(void);
SPILLWAY_EXPORT void spillway_client_options_free(spillway_client_options* options);
/* The server: `host:port`, `unix:/path`, or any other name that gRPC resolves. Several servers:
   comma-separated addresses, or `dns:///host:port` for all addresses of a name; calls go to those
   that serve, in turn. Default: none, i.e. the core in this process; the options below then have no
   effect. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_target(
    spillway_client_options* options, const char* target);
/* Graphs up to this many bytes go in one message, larger ones in a stream. Default: 2 MiB. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_unary_max_bytes(
    spillway_client_options* options, int64_t bytes);
/* The graph bytes in each message of a stream. 1 and up. Default: 512 KiB. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_chunk_bytes(
    spillway_client_options* options, int64_t bytes);
/* The maximum number of attempts of a call in all, if the server cannot be reached or asks to retry
   later. 1 (no retries) and up. Default: 5. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_max_attempts(
    spillway_client_options* options, int32_t attempts);

/* Uses TLS. Each of these is a file in PEM format, or NULL: `ca_file`, the CA certificates that may
   sign the server's certificate (NULL: those that this machine trusts); `cert_file` and `key_file`,
   the client's certificate and private key (both or neither).
   `server_name`: the name that the server's certificate must contain (NULL: the host in the
   target).
   The files are read by the first call, and again after one that failed because the server could
   not be reached (UNAVAILABLE) or a file was unusable (INVALID_ARGUMENT).
   Default: no TLS. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_tls(spillway_client_options* options,
                                                                 const char* ca_file,
                                                                 const char* cert_file,
                                                                 const char* key_file,
                                                                 const char* server_name);

/* Sends the token in this file with each call (`authorization: Bearer TOKEN`). The file is read by
   every call. NULL: none, the default. Since version 4, like the next two. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_token_file(
    spillway_client_options* options, const char* file);
/* Nonzero: also sends tokens if others can read them, without TLS to another machine; otherwise
   such a call fails with INVALID_ARGUMENT. Default: 0. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_token_in_clear(
    spillway_client_options* options, int32_t allowed);
/* Sends a rewrite without an answer after this time a second time, to another server if
   possible; the first answer wins. 1 and up. Default: never. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_hedge_after_ms(
    spillway_client_options* options, int64_t milliseconds);

typedef struct spillway_client spillway_client;

/* `options`: NULL, or options without a target, for the core in this process. They are copied. The
   first call connects. */
SPILLWAY_EXPORT spillway_status* spillway_client_new(const spillway_client_options* options,
                                                     spillway_client** client);
SPILLWAY_EXPORT void spillway_client_free(spillway_client* client);

/* ---- Options of a call: time, cancellation, progress, metadata. A NULL spillway_call stands for
   no limit and no callback. One handle may serve several calls; cancelling it ends all of them. */

typedef struct spillway_call spillway_call;

SPILLWAY_EXPORT spillway_call* spillway_call_new(void);
SPILLWAY_EXPORT void spillway_call_free(spillway_call* call);
/* The call fails with DEADLINE_EXCEEDED after this time; zero or less: before it starts. Set it
   before the handle is used. Default: no limit. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_timeout_ms(spillway_call* call,
                                                              int64_t milliseconds);
/* Nonzero: when the time of a rewrite of the strategy `budget` is up, or its call is cancelled, the
   best plan that its search has found is the answer (RewriteReport.stopped_early). In this process
   only; a server's call fails with INVALID_ARGUMENT. Set it before the handle is used. Default: 0.
   Since version 8. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_keep_best(spillway_call* call, int32_t keep);
/* Metadata that is sent to a server, each NULL for none. A malformed value makes the call fail with
   INVALID_ARGUMENT. Set them before the handle is used. Since version 4. The environment names the
   job that a call is for: SPILLWAY_JOB, SPILLWAY_USER, SPILLWAY_QUEUE and SPILLWAY_MODEL, as they
   are when the client is made. */

/* The id of the call in the server's log: 1 to 128 printable ASCII characters without space, quote
   or backslash. Default: the server makes one. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_request_id(spillway_call* call, const char* id);
/* The span that the call belongs to, in the format of W3C Trace Context. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_traceparent(spillway_call* call,
                                                               const char* traceparent);
/* The bearer token, instead of the one in the client's token file. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_token(spillway_call* call, const char* token);
/* Ends every current and future call that uses the handle with CANCELLED. From any thread; not from
   a signal handler. No effect for NULL. */
SPILLWAY_EXPORT void spillway_call_cancel(spillway_call* call);

/* The stages of a call. More may be added. */
enum {
  SPILLWAY_STAGE_SENDING = 1,   /* The graph is sent to the server. */
  SPILLWAY_STAGE_REWRITING = 2, /* The core is working, here or in the server. */
  SPILLWAY_STAGE_RECEIVING = 3  /* The graph is received from the server. */
};
/* `done` of `total` bytes of the stage; both are 0 if there is nothing to count. Called on any
   thread, never concurrently, and not after the call has returned. It must be short and must not
   call any spillway_* function but spillway_call_cancel. */
typedef void (*spillway_progress_fn)(int32_t stage, int64_t done, int64_t total, void* user_data);
/* Set it before the handle is used. `progress` NULL: none. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_progress(spillway_call* call,
                                                            spillway_progress_fn progress,
                                                            void* user_data);

/* ---- Calls. They block until done. Errors: see RewriteService in rewrite_service.proto. */

/* Graph in, graph out, without a message around it and without copying it. `graph`: a serialized
   tensorflow.GraphDef of at most 2 GiB. `options`: a serialized spillway.v1.RewriteOptions; NULL
   and 0 for the defaults. Its field `outputs` is ignored: `graph_out` receives the rewritten graph
   and `report_out` a spillway.v1.RewriteReport. Either may be NULL, but not both. */
SPILLWAY_EXPORT spillway_status* spillway_rewrite_graph(spillway_client* client, const void* graph,
                                                        size_t graph_size, const void* options,
                                                        size_t options_size, spillway_call* call,
                                                        spillway_buffer** graph_out,
                                                        spillway_buffer** report_out);

/* A spillway.v1.RewriteRequest in, a spillway.v1.RewriteResponse out. */
SPILLWAY_EXPORT spillway_status* spillway_rewrite(spillway_client* client, const void* request,
                                                  size_t request_size, spillway_call* call,
                                                  spillway_buffer** response);

/* A spillway.v1.GetCapabilitiesResponse. */
SPILLWAY_EXPORT spillway_status* spillway_get_capabilities(spillway_client* client,
                                                           spillway_call* call,
                                                           spillway_buffer** response);

/* As defined by grpc.health.v1. */
enum {
  SPILLWAY_HEALTH_UNKNOWN = 0,
  SPILLWAY_HEALTH_SERVING = 1,
  SPILLWAY_HEALTH_NOT_SERVING = 2,
  SPILLWAY_HEALTH_SERVICE_UNKNOWN = 3
};
/* `service`: NULL or "" for the server as a whole. */
SPILLWAY_EXPORT spillway_status* spillway_check_health(spillway_client* client, const char* service,
                                                       spillway_call* call, int32_t* health);

/* ---- Questions about graphs, on any client. `graph`: as above. `options`: a serialized message;
   NULL and 0 for the defaults. Since version 3; earlier functions of these names took no client. */

/* Receives one serialized message of an answer that has several. The bytes are valid only during
   the callback. Called on the thread of the call, before the call returns; delivered
   messages remain valid even if the call then fails. It may cancel the call, and must not free or
   reuse its handles. */
typedef void (*spillway_part_fn)(const void* message, size_t size, void* user_data);

/* What a graph contains: a spillway.v1.GraphSummary. `options`: InspectOptions, whose field
   `tensors` is ignored: `on_tensors`, if not NULL, receives every tensor of the graph in
   TensorLists of some thousands each. */
SPILLWAY_EXPORT spillway_status* spillway_inspect(spillway_client* client, const void* graph,
                                                  size_t graph_size, const void* options,
                                                  size_t options_size, spillway_call* call,
                                                  spillway_part_fn on_tensors, void* user_data,
                                                  spillway_buffer** summary);

/* Memory and time of a step of the graph on a machine: a spillway.v1.SimulateReport. `options`:
   SimulateOptions. A step that does not fit is a result, not an error. */
SPILLWAY_EXPORT spillway_status* spillway_simulate(spillway_client* client, const void* graph,
                                                   size_t graph_size, const void* options,
                                                   size_t options_size, spillway_call* call,
                                                   spillway_buffer** report);

/* How large a batch or an image may be: a spillway.v1.ExploreReport. `options`: ExploreOptions.
   `on_size`, if not NULL, receives each ExploredSize once, as it is found, in any order. */
SPILLWAY_EXPORT spillway_status* spillway_explore(spillway_client* client, const void* graph,
                                                  size_t graph_size, const void* options,
                                                  size_t options_size, spillway_call* call,
                                                  spillway_part_fn on_size, void* user_data,
                                                  spillway_buffer** report);

/* How graph `b` differs from graph `a`: a spillway.v1.GraphDiff. */
SPILLWAY_EXPORT spillway_status* spillway_diff(spillway_client* client, const void* a,
                                               size_t a_size, const void* b, size_t b_size,
                                               spillway_call* call, spillway_buffer** diff);

/* ---- Pictures. Pure functions of messages: no client, no file. Since version 6. */

/* Draws `report`; the picture is UTF-8 text. `name`: the message type, "SimulateReport" (with
   memory and trace: the memory of a step and the activity of its engines) or "ExploreReport"
   (throughput against size). `before`: a SimulateReport of the step before a rewrite, to be drawn
   beside it; NULL and 0 for none. `format`: "svg", "html" (a self-contained page), or "trace" (the
   Trace Event format, for Perfetto; SimulateReport only, without `before`). `theme`: "light",
   "dark", or NULL or "auto" for the viewer's preference. `title`: NULL or "" for the default.
   Since version 7, `name` may also be "RunMetadata", with `report` that of a full trace, `before`
   the SimulateReport to show beside it, and the format "trace". */
SPILLWAY_EXPORT spillway_status* spillway_draw(const char* name, const void* report,
                                               size_t report_size, const void* before,
                                               size_t before_size, const char* format,
                                               const char* theme, const char* title,
                                               spillway_buffer** picture);

/* ---- Answers for people, and the check after a run. Pure functions: no client, no file. Since
   version 7. */

/* The text, UTF-8, that the program `spillway` prints for a message, in lines of at most 100
   characters; options are named as in options.proto. `name`: the message type: "RewriteReport",
   "Forecast", "SimulateReport", "ExploreReport", "ExploredSize", "GraphSummary", "GraphDiff",
   "RunCheck" or "GetCapabilitiesResponse"; `message`: one, serialized. Or one of
   "RewriteReport line": what the rewrite costs, in one line without a newline;
   "bytes", "nanoseconds": a size or a time, `message` being the number in decimal digits;
   "near names": "; did you mean 'a' or 'b'?" or nothing, `message` being a word, a newline, and the
   known names, separated by newlines. */
SPILLWAY_EXPORT spillway_status* spillway_text(const char* name, const void* message,
                                               size_t message_size, spillway_buffer** text);

/* A plan and a traced step of it, side by side: a spillway.v1.RunCheck. `report`: the RewriteReport
   of the graph that ran. `run_metadata`: a RunMetadata or StepStats of TensorFlow, of a full
   trace. */
SPILLWAY_EXPORT spillway_status* spillway_check(const void* report, size_t report_size,
                                                const void* run_metadata, size_t run_metadata_size,
                                                spillway_buffer** check);

/* ---- This machine. */

/* The memory in bytes that TensorFlow's allocator can use on this machine's smallest GPU, according
   to nvidia-smi: for hardware.gpu_memory_bytes of a step. 0 if there is no nvidia-smi, or it does
   not answer within 5 s. It is asked once in a process. Since version 5. */
SPILLWAY_EXPORT spillway_status* spillway_find_gpu_memory(int64_t* bytes);

/* ---- Messages without protobuf. `name`: a message of spillway.v1, e.g. "RewriteOptions". JSON is
   that of proto3, with the field names of the .proto files. */

/* `json`: text of `json_size` bytes. An unknown field or a wrong type is an error. */
SPILLWAY_EXPORT spillway_status* spillway_message_from_json(const char* name, const char* json,
                                                            size_t json_size,
                                                            spillway_buffer** message);

/* Indented JSON. 64-bit numbers are strings. Zero and empty values are written, absent fields are
   not. */
SPILLWAY_EXPORT spillway_status* spillway_message_to_json(const char* name, const void* message,
                                                          size_t message_size,
                                                          spillway_buffer** json);

#ifdef __cplusplus
}
#endif

#endif /* SPILLWAY_SPILLWAY_H_ */
