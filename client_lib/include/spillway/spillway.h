/* The C API of Spillway: rewrites TensorFlow graphs so that tensors wait in host memory, and tells
   what a graph is made of, whether a step of it fits a GPU, and how large it may be. C99.

     spillway_client* client = NULL;
     spillway_buffer* graph = NULL;
     spillway_status* status = spillway_client_new(NULL, &client);   (NULL: in this process)
     if (status == NULL) {
       status = spillway_rewrite_graph(client, bytes, size, NULL, 0, NULL, &graph, NULL);
     }
     if (status != NULL) {
       fprintf(stderr, "%s [%s]\n", spillway_status_message(status),
   spillway_status_reason(status)); spillway_status_free(status);
     }

   The library behind it shows no symbol but spillway_*, so it may live in one process with
   TensorFlow, which brings protobuf, Abseil and gRPC of its own.

   Rules
   - A function that returns spillway_status* returns NULL when it succeeded. Otherwise the caller
     frees the status, and no output was written.
   - Handles are opaque. Whoever gets one from _new or an output frees it with its _free, which
   takes NULL. No handle may be freed while another thread uses it.
   - What goes in is read only during the call and never kept. `size` is in bytes.
   - A NULL where something is needed is an error (INVALID_ARGUMENT, BAD_OPTION), never a crash. No
     C++ exception comes out.
   - Messages are those of the .proto files of spillway.v1, serialized. A caller without protobuf
     uses spillway_message_from_json and spillway_message_to_json.

   Threads: clients and calls may be used by any number of threads at once. Client options, statuses
   and buffers may be read by several, and changed by one.

   Compatibility: a function keeps its name, arguments and meaning as long as the number in the
   library's name stays (libspillway.so.0). New functions raise SPILLWAY_C_API_VERSION. */
#ifndef SPILLWAY_SPILLWAY_H_
#define SPILLWAY_SPILLWAY_H_

#include <stddef.h>
#include <stdint.h>

#include "spillway/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. The library's own may be higher, never lower. */
#define SPILLWAY_C_API_VERSION 6
SPILLWAY_EXPORT int32_t spillway_c_api_version(void);

/* The library's version, `MAJOR.MINOR.PATCH`. */
SPILLWAY_EXPORT const char* spillway_version(void);

/* ---- Errors. Every accessor takes NULL as "OK". Texts live as long as the status. */

typedef struct spillway_status spillway_status;

/* The code as gRPC numbers it: 0 OK, 1 CANCELLED, 3 INVALID_ARGUMENT, 4 DEADLINE_EXCEEDED,
   8 RESOURCE_EXHAUSTED, 9 FAILED_PRECONDITION, 11 OUT_OF_RANGE, 13 INTERNAL, 14 UNAVAILABLE, ... */
SPILLWAY_EXPORT int32_t spillway_status_code(const spillway_status* status);
/* One sentence for people. "" if OK. */
SPILLWAY_EXPORT const char* spillway_status_message(const spillway_status* status);
/* For programs: an ErrorReason of error.proto without its prefix, e.g. "DANGLING_INPUT". Stable. ""
   where there is none (a server that cannot be reached). */
SPILLWAY_EXPORT const char* spillway_status_reason(const spillway_status* status);
/* The names and numbers in the message, sorted by key. NULL for an index out of range. */
SPILLWAY_EXPORT size_t spillway_status_metadata_count(const spillway_status* status);
SPILLWAY_EXPORT const char* spillway_status_metadata_key(const spillway_status* status,
                                                         size_t index);
SPILLWAY_EXPORT const char* spillway_status_metadata_value(const spillway_status* status,
                                                           size_t index);
SPILLWAY_EXPORT void spillway_status_free(spillway_status* status);

/* ---- Bytes that the library hands out. */

typedef struct spillway_buffer spillway_buffer;

/* A zero byte follows the last one, so that a text may be read as a C string. "" and 0 for NULL. */
SPILLWAY_EXPORT const char* spillway_buffer_data(const spillway_buffer* buffer);
SPILLWAY_EXPORT size_t spillway_buffer_size(const spillway_buffer* buffer);
SPILLWAY_EXPORT void spillway_buffer_free(spillway_buffer* buffer);

/* ---- Where calls go: to the core in this process, or to a server (spillwayd). */

typedef struct spillway_client_options spillway_client_options;

/* NULL only where spillway_client_new fails, too. */
SPILLWAY_EXPORT spillway_client_options* spillway_client_options_new(void);
SPILLWAY_EXPORT void spillway_client_options_free(spillway_client_options* options);
/* The server: `host:port`, `unix:/path`, or any other name that gRPC resolves. Several servers:
   their addresses with commas between, or `dns:///host:port` for all that the name stands for;
   calls go to those that serve, in turn. Default: none, the core in this process; then the options
   below have no effect. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_target(
    spillway_client_options* options, const char* target);
/* Graphs up to this many bytes go in one message, larger ones in a stream. Default: 2 MiB. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_unary_max_bytes(
    spillway_client_options* options, int64_t bytes);
/* The graph bytes in each message of a stream. 1 and up. Default: 512 KiB. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_chunk_bytes(
    spillway_client_options* options, int64_t bytes);
/* How often a call is made in all, where the server cannot be reached or asks to come back.
   1 (never again) and up. Default: 5. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_max_attempts(
    spillway_client_options* options, int32_t attempts);

/* Talks TLS with the server. Each of these is a file in PEM format, or NULL: `ca_file`, the
   authorities that the server's certificate may come from (NULL: those that this machine trusts);
   `cert_file` and `key_file`, the client's certificate and private key (both or none).
   `server_name`: the name that the server's certificate must hold (NULL: the host in the target).
   The files are read by the first call, and again after one that failed because the server could
   not be reached (UNAVAILABLE) or a file could not be used (INVALID_ARGUMENT).
   Default: no TLS. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_tls(spillway_client_options* options,
                                                                 const char* ca_file,
                                                                 const char* cert_file,
                                                                 const char* key_file,
                                                                 const char* server_name);

/* Each call shows the token in this file to the server (`authorization: Bearer TOKEN`); it is read
   by every call. NULL: none, the default. Since version 4, as are the next two. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_token_file(
    spillway_client_options* options, const char* file);
/* Not 0: also sends tokens where others can read them, without TLS to another machine; otherwise
   such a call is INVALID_ARGUMENT. Default: 0. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_token_in_clear(
    spillway_client_options* options, int32_t allowed);
/* Asks for a rewrite that has no answer after this time a second time, of another server if there
   is one; the first answer counts. 1 and up. Default: never. */
SPILLWAY_EXPORT spillway_status* spillway_client_options_set_hedge_after_ms(
    spillway_client_options* options, int64_t milliseconds);

typedef struct spillway_client spillway_client;

/* `options`: NULL, or options without a target, for the core in this process. They are copied. No
   connection is made before the first call. */
SPILLWAY_EXPORT spillway_status* spillway_client_new(const spillway_client_options* options,
                                                     spillway_client** client);
SPILLWAY_EXPORT void spillway_client_free(spillway_client* client);

/* ---- What holds for a call: time, cancellation, progress, metadata. NULL where a call is wanted
   stands for no limit and no callback. One handle may serve several calls; cancelling it ends all
   of them. */

typedef struct spillway_call spillway_call;

SPILLWAY_EXPORT spillway_call* spillway_call_new(void);
SPILLWAY_EXPORT void spillway_call_free(spillway_call* call);
/* The call ends with DEADLINE_EXCEEDED after this time. Zero or less: before it starts. Set it
   before the handle is used. Default: no limit. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_timeout_ms(spillway_call* call,
                                                              int64_t milliseconds);
/* What is sent to a server besides, each NULL for nothing; what does not have its form is
   INVALID_ARGUMENT, at the call. Set them before the handle is used. Since version 4.
   The name of the call in the server's log: 1 to 128 printable ASCII characters without space,
   quote or backslash. Default: the server makes one. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_request_id(spillway_call* call, const char* id);
/* The span that the call belongs to, as W3C Trace Context has it. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_traceparent(spillway_call* call,
                                                               const char* traceparent);
/* The job that the call is for is named by the environment: SPILLWAY_JOB, SPILLWAY_USER,
   SPILLWAY_QUEUE and SPILLWAY_MODEL, as they are when the client is made.
   Instead of that of the client's token file. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_token(spillway_call* call, const char* token);
/* Ends the calls that use the handle, now and later, with CANCELLED. From any thread; not from a
   signal handler. Does nothing for NULL. */
SPILLWAY_EXPORT void spillway_call_cancel(spillway_call* call);

/* What a call is doing. Others may come. */
enum {
  SPILLWAY_STAGE_SENDING = 1,   /* The graph goes to the server. */
  SPILLWAY_STAGE_REWRITING = 2, /* The core works, here or there. */
  SPILLWAY_STAGE_RECEIVING = 3  /* The graph comes back from the server. */
};
/* `done` of `total` bytes of the stage; both 0 where there is nothing to count. Called one at a
   time and not after the call has returned, on any thread: it must be short and must not call
   spillway_* but spillway_call_cancel. */
typedef void (*spillway_progress_fn)(int32_t stage, int64_t done, int64_t total, void* user_data);
/* Set it before the handle is used. `progress` NULL: none. */
SPILLWAY_EXPORT spillway_status* spillway_call_set_progress(spillway_call* call,
                                                            spillway_progress_fn progress,
                                                            void* user_data);

/* ---- Calls. They block until done. Errors: see RewriteService in rewrite_service.proto. */

/* Graph in, graph out: no message around it, and no copy of it. `graph`: a serialized
   tensorflow.GraphDef of at most 2 GiB. `options`: a serialized spillway.v1.RewriteOptions; NULL
   and 0 for the defaults; its field `outputs` is ignored: `graph_out` gets the rewritten graph and
   `report_out` a spillway.v1.RewriteReport. Either may be NULL, not both. */
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

/* As grpc.health.v1 has it. */
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
   NULL and 0 for the defaults. Since version 3; before it, what there was had no client. */

/* Takes one message of an answer that comes in several, serialized; its bytes live during the call
   alone. Called on the thread of the call, before that returns; what it was given stands even if
   the call then fails. It may cancel the call, and must not free or reuse its handles. */
typedef void (*spillway_part_fn)(const void* message, size_t size, void* user_data);

/* What a graph is made of: a spillway.v1.GraphSummary. `options`: InspectOptions, whose field
   `tensors` is ignored: `on_tensors`, if not NULL, gets every tensor of the graph, some thousands
   at a time, as TensorLists. */
SPILLWAY_EXPORT spillway_status* spillway_inspect(spillway_client* client, const void* graph,
                                                  size_t graph_size, const void* options,
                                                  size_t options_size, spillway_call* call,
                                                  spillway_part_fn on_tensors, void* user_data,
                                                  spillway_buffer** summary);

/* What a step of the graph takes on a machine: a spillway.v1.SimulateReport. `options`:
   SimulateOptions. That it does not fit is an answer, not an error. */
SPILLWAY_EXPORT spillway_status* spillway_simulate(spillway_client* client, const void* graph,
                                                   size_t graph_size, const void* options,
                                                   size_t options_size, spillway_call* call,
                                                   spillway_buffer** report);

/* How large a batch or an image may be: a spillway.v1.ExploreReport. `options`: ExploreOptions.
   `on_size`, if not NULL, gets each ExploredSize once, as it is found, in any order. */
SPILLWAY_EXPORT spillway_status* spillway_explore(spillway_client* client, const void* graph,
                                                  size_t graph_size, const void* options,
                                                  size_t options_size, spillway_call* call,
                                                  spillway_part_fn on_size, void* user_data,
                                                  spillway_buffer** report);

/* What tells graph `b` from graph `a`: a spillway.v1.GraphDiff. */
SPILLWAY_EXPORT spillway_status* spillway_diff(spillway_client* client, const void* a,
                                               size_t a_size, const void* b, size_t b_size,
                                               spillway_call* call, spillway_buffer** diff);

/* ---- Pictures. Pure functions of messages: no client, no file. Since version 6. */

/* A picture of `report`, a text in UTF-8. `name`: which message it is, "SimulateReport" (with
   memory and trace: the memory of a step and what its engines do) or "ExploreReport" (throughput
   against size). `before`: a SimulateReport of the step before a rewrite, to be drawn beside it;
   NULL and 0 for none. `format`: "svg", "html" (a page that needs nothing else), or "trace" (the
   Trace Event format, for Perfetto; of a SimulateReport, without `before`). `theme`: "light",
   "dark", or NULL or "auto" for what whoever looks at it prefers. `title`: NULL or "" for what is
   shown. */
SPILLWAY_EXPORT spillway_status* spillway_draw(const char* name, const void* report,
                                               size_t report_size, const void* before,
                                               size_t before_size, const char* format,
                                               const char* theme, const char* title,
                                               spillway_buffer** picture);

/* ---- This machine. */

/* The memory that TensorFlow's allocator can use on the GPU of this machine that leaves the least,
   as nvidia-smi has it, in bytes: for hardware.gpu_memory_bytes of a step. 0: there is no
   nvidia-smi, or it has no answer within 5 s. Since version 5. */
SPILLWAY_EXPORT spillway_status* spillway_find_gpu_memory(int64_t* bytes);

/* ---- Messages without protobuf. `name`: a message of spillway.v1, e.g. "RewriteOptions". JSON is
   that of proto3, with the field names of the .proto files. */

/* `json`: a text of `json_size` bytes. An unknown field or a wrong type is an error. */
SPILLWAY_EXPORT spillway_status* spillway_message_from_json(const char* name, const char* json,
                                                            size_t json_size,
                                                            spillway_buffer** message);

/* Indented. 64-bit numbers are strings; what is 0 or empty is there, what is absent is not. */
SPILLWAY_EXPORT spillway_status* spillway_message_to_json(const char* name, const void* message,
                                                          size_t message_size,
                                                          spillway_buffer** json);

#ifdef __cplusplus
}
#endif

#endif /* SPILLWAY_SPILLWAY_H_ */
