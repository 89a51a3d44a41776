// The work behind spillway.h, over the C++ client. No exception leaves a function here.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/c_api/call_table.h"
#include "client_lib/c_api/handles.h"
#include "client_lib/internal/this_machine.h"
#include "client_lib/plot/chrome_trace.h"
#include "client_lib/plot/picture.h"
#include "client_lib/text/check_run.h"
#include "client_lib/text/message_text.h"
#include "google/protobuf/util/json_util.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"
#include "spillway/client.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"
#include "spillway/v1/plan.pb.h"

struct spillway_client_options {
  spillway::RemoteOptions remote;
};

struct spillway_client {
  spillway::Client client;
};

struct spillway_call {
  spillway::CallOptions options;
};

namespace spillway::c_api {
namespace {

constexpr char kPackage[] = "spillway.v1.";

// ---- From C++ to C.

spillway_status* NoMemory() {
  static spillway_status status{static_cast<int32_t>(absl::StatusCode::kResourceExhausted),
                                "there is not enough memory for this call",
                                "",
                                {},
                                true};
  return &status;
}

spillway_status* ToC(const absl::Status& status) {
  if (status.ok()) return nullptr;
  const v1::ErrorInfo info = core::GetErrorInfo(status);
  auto result = std::make_unique<spillway_status>();
  result->code = static_cast<int32_t>(status.code());
  result->message = std::string(status.message());
  result->reason = info.reason();
  result->metadata.assign(info.metadata().begin(), info.metadata().end());
  std::sort(result->metadata.begin(), result->metadata.end());
  return result.release();
}

// Runs `work`, which returns an absl::Status.
template <typename Work>
spillway_status* Guarded(const Work& work) noexcept {
  try {
    try {
      return ToC(work());
    } catch (const std::bad_alloc&) {
      return NoMemory();
    } catch (const std::exception& error) {
      return ToC(core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                             absl::StrCat("unexpected failure: ", error.what())));
    }
  } catch (...) {
    return NoMemory();
  }
}

template <typename Handle>
Handle* NewHandle() noexcept {
  try {
    return new Handle();
  } catch (...) {
    return nullptr;
  }
}

// ---- Arguments.

absl::Status BadArgument(absl::string_view name, absl::string_view what) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION, absl::StrCat(name, " ", what),
                            {{"argument", name}});
}

struct Argument {
  const void* pointer;
  const char* name;
};

absl::Status CheckGiven(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.pointer == nullptr) return BadArgument(argument.name, "is NULL; it is needed");
  }
  return absl::OkStatus();
}

// The only way from a pointer and a size to a view. No message, and no graph, has 2 GiB: a larger
// size is a mistake, as -1 is, and there may be no such memory.
absl::StatusOr<absl::string_view> Bytes(const void* data, size_t size, absl::string_view name) {
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return core::Error(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_LIMIT_EXCEEDED,
                       absl::StrCat(name, " has ", size,
                                    " bytes, and may have 2147483647, as protobuf reads no more"),
                       {{"argument", name}});
  }
  if (data == nullptr && size > 0) {
    return BadArgument(name, absl::StrCat("is NULL, with a size of ",
                                          core::CountText(static_cast<int64_t>(size), "byte")));
  }
  return absl::string_view(static_cast<const char*>(data), size);
}

std::string TextOrNone(const char* given) { return given == nullptr ? "" : given; }

absl::Status Parse(const void* data, size_t size, absl::string_view name,
                   google::protobuf::Message* message) {
  const absl::StatusOr<absl::string_view> bytes = Bytes(data, size, name);
  if (!bytes.ok()) return bytes.status();
  if (!message->ParseFromArray(bytes->data(), static_cast<int>(size))) {
    return BadArgument(name,
                       absl::StrCat("is not a serialized ", message->GetTypeName(), " (",
                                    core::CountText(static_cast<int64_t>(size), "byte"), ")"));
  }
  return absl::OkStatus();
}

CallOptions OptionsOf(const spillway_call* call) {
  return call == nullptr ? CallOptions() : call->options;
}

spillway_buffer* NewBuffer(std::string bytes) { return new spillway_buffer{std::move(bytes)}; }

absl::Status Serialize(const google::protobuf::Message& message, spillway_buffer** out) {
  if (message.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return core::Error(absl::StatusCode::kOutOfRange, v1::ERROR_REASON_RESULT_TOO_LARGE,
                       absl::StrCat("the answer has ", message.ByteSizeLong(),
                                    " bytes, more than one message can hold; ask with "
                                    "spillway_rewrite_graph"));
  }
  *out = NewBuffer(message.SerializeAsString());
  return absl::OkStatus();
}

// ---- The functions.

const char* Version() { return SPILLWAY_VERSION; }

void StatusFree(spillway_status* status) { delete status; }
void BufferFree(spillway_buffer* buffer) { delete buffer; }
spillway_client_options* ClientOptionsNew() { return NewHandle<spillway_client_options>(); }
void ClientOptionsFree(spillway_client_options* options) { delete options; }
void ClientFree(spillway_client* client) { delete client; }
spillway_call* CallNew() { return NewHandle<spillway_call>(); }
void CallFree(spillway_call* call) { delete call; }

spillway_status* SetTarget(spillway_client_options* options, const char* target) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{options, "options"}, {target, "target"}});
    if (status.ok()) options->remote.target = target;
    return status;
  });
}

// Sets a number that has a minimum.
template <typename Field, typename Value>
spillway_status* SetNumber(spillway_client_options* options, const char* name, Value least,
                           Value value, const Field& field) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{options, "options"}});
    if (!status.ok()) return status;
    if (value < least) {
      return BadArgument(name, absl::StrCat("is ", value, "; it has to be at least ", least));
    }
    field(&options->remote) = value;
    return absl::OkStatus();
  });
}

spillway_status* SetUnaryMaxBytes(spillway_client_options* options, int64_t bytes) {
  return SetNumber(options, "bytes", int64_t{0}, bytes,
                   [](RemoteOptions* remote) -> int64_t& { return remote->unary_max_bytes; });
}

spillway_status* SetChunkBytes(spillway_client_options* options, int64_t bytes) {
  return SetNumber(options, "bytes", int64_t{1}, bytes,
                   [](RemoteOptions* remote) -> int64_t& { return remote->chunk_bytes; });
}

spillway_status* SetMaxAttempts(spillway_client_options* options, int32_t attempts) {
  return SetNumber(options, "attempts", int32_t{1}, attempts,
                   [](RemoteOptions* remote) -> int& { return remote->retry.max_attempts; });
}

spillway_status* SetTls(spillway_client_options* options, const char* ca_file,
                        const char* cert_file, const char* key_file, const char* server_name) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{options, "options"}});
    if (!status.ok()) return status;
    TlsOptions tls;
    tls.ca_file = TextOrNone(ca_file);
    tls.cert_file = TextOrNone(cert_file);
    tls.key_file = TextOrNone(key_file);
    tls.server_name = TextOrNone(server_name);
    options->remote.tls = std::move(tls);
    return absl::OkStatus();
  });
}

spillway_status* SetTokenFile(spillway_client_options* options, const char* file) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{options, "options"}});
    if (status.ok()) options->remote.token_file = TextOrNone(file);
    return status;
  });
}

spillway_status* SetTokenInClear(spillway_client_options* options, int32_t allowed) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{options, "options"}});
    if (status.ok()) options->remote.token_in_clear = allowed != 0;
    return status;
  });
}

spillway_status* SetHedgeAfter(spillway_client_options* options, int64_t milliseconds) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{options, "options"}});
    if (!status.ok()) return status;
    if (milliseconds < 1) {
      return BadArgument("milliseconds",
                         absl::StrCat("is ", milliseconds, "; it has to be at least 1"));
    }
    options->remote.hedge_after = absl::Milliseconds(milliseconds);
    return absl::OkStatus();
  });
}

spillway_status* ClientNew(const spillway_client_options* options, spillway_client** client) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}});
    if (!status.ok()) return status;
    const bool local = options == nullptr || options->remote.target.empty();
    *client = new spillway_client{
        Client(local ? MakeLocalConnection() : MakeRemoteConnection(options->remote))};
    return absl::OkStatus();
  });
}

spillway_status* SetTimeout(spillway_call* call, int64_t milliseconds) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{call, "call"}});
    if (status.ok()) call->options.timeout = absl::Milliseconds(milliseconds);
    return status;
  });
}

spillway_status* SetKeepBest(spillway_call* call, int32_t keep) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{call, "call"}});
    if (status.ok()) call->options.keep_best = keep != 0;
    return status;
  });
}

spillway_status* SetCallText(spillway_call* call, std::string CallOptions::*field,
                             const char* text) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{call, "call"}});
    if (status.ok()) call->options.*field = TextOrNone(text);
    return status;
  });
}

spillway_status* SetRequestId(spillway_call* call, const char* id) {
  return SetCallText(call, &CallOptions::request_id, id);
}

spillway_status* SetTraceparent(spillway_call* call, const char* traceparent) {
  return SetCallText(call, &CallOptions::traceparent, traceparent);
}

spillway_status* SetToken(spillway_call* call, const char* token) {
  return SetCallText(call, &CallOptions::token, token);
}

void Cancel(spillway_call* call) { call->options.cancellation.Cancel(); }

int32_t StageNumber(Stage stage) {
  switch (stage) {
    case Stage::kSending:
      return SPILLWAY_STAGE_SENDING;
    case Stage::kRewriting:
      return SPILLWAY_STAGE_REWRITING;
    case Stage::kReceiving:
      return SPILLWAY_STAGE_RECEIVING;
  }
  return 0;
}

spillway_status* SetProgress(spillway_call* call, spillway_progress_fn progress, void* user_data) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{call, "call"}});
    if (!status.ok()) return status;
    call->options.on_progress = nullptr;
    if (progress != nullptr) {
      call->options.on_progress = [progress, user_data](const Progress& now) {
        progress(StageNumber(now.stage), now.done_bytes, now.total_bytes, user_data);
      };
    }
    return absl::OkStatus();
  });
}

spillway_status* RewriteGraph(spillway_client* client, const void* graph, size_t graph_size,
                              const void* options, size_t options_size, spillway_call* call,
                              spillway_buffer** graph_out, spillway_buffer** report_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}});
    if (!status.ok()) return status;
    if (graph_out == nullptr && report_out == nullptr) {
      return BadArgument("graph_out", "and report_out are NULL; one of them is needed");
    }
    const absl::StatusOr<absl::string_view> bytes = Bytes(graph, graph_size, "graph");
    if (!bytes.ok()) return bytes.status();
    v1::RewriteOptions parsed;
    status = Parse(options, options_size, "options", &parsed);
    if (!status.ok()) return status;
    parsed.clear_outputs();
    if (graph_out != nullptr) parsed.add_outputs(v1::OUTPUT_GRAPH);
    if (report_out != nullptr) parsed.add_outputs(v1::OUTPUT_REPORT);
    absl::StatusOr<v1::RewriteResponse> response =
        client->client.Rewrite(*bytes, parsed, OptionsOf(call));
    if (!response.ok()) return response.status();
    std::unique_ptr<spillway_buffer> report;
    if (report_out != nullptr) report.reset(NewBuffer(response->report().SerializeAsString()));
    if (graph_out != nullptr) *graph_out = NewBuffer(std::move(*response->mutable_graph_def()));
    if (report_out != nullptr) *report_out = report.release();
    return absl::OkStatus();
  });
}

spillway_status* Rewrite(spillway_client* client, const void* request, size_t request_size,
                         spillway_call* call, spillway_buffer** response_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}, {response_out, "response"}});
    if (!status.ok()) return status;
    v1::RewriteRequest parsed;
    status = Parse(request, request_size, "request", &parsed);
    if (!status.ok()) return status;
    const absl::StatusOr<v1::RewriteResponse> response =
        client->client.Rewrite(parsed.graph_def(), parsed.options(), OptionsOf(call));
    return response.ok() ? Serialize(*response, response_out) : response.status();
  });
}

spillway_status* GetCapabilities(spillway_client* client, spillway_call* call,
                                 spillway_buffer** response_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}, {response_out, "response"}});
    if (!status.ok()) return status;
    const auto response = client->client.GetCapabilities(OptionsOf(call));
    return response.ok() ? Serialize(*response, response_out) : response.status();
  });
}

int32_t HealthNumber(ServingStatus status) {
  switch (status) {
    case ServingStatus::kServing:
      return SPILLWAY_HEALTH_SERVING;
    case ServingStatus::kNotServing:
      return SPILLWAY_HEALTH_NOT_SERVING;
    case ServingStatus::kServiceUnknown:
      return SPILLWAY_HEALTH_SERVICE_UNKNOWN;
    case ServingStatus::kUnknown:
      break;
  }
  return SPILLWAY_HEALTH_UNKNOWN;
}

spillway_status* CheckHealth(spillway_client* client, const char* service, spillway_call* call,
                             int32_t* health) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}, {health, "health"}});
    if (!status.ok()) return status;
    const absl::StatusOr<ServingStatus> answer =
        client->client.CheckHealth(service == nullptr ? "" : service, OptionsOf(call));
    if (answer.ok()) *health = HealthNumber(*answer);
    return answer.status();
  });
}

// Answers a question about one graph: `ask(client, graph, options, call)`.
template <typename Options, typename Ask>
spillway_status* AskOf(spillway_client* client, const void* graph, size_t graph_size,
                       const void* options, size_t options_size, spillway_call* call,
                       const char* out_name, spillway_buffer** out, const Ask& ask) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}, {out, out_name}});
    if (!status.ok()) return status;
    const absl::StatusOr<absl::string_view> bytes = Bytes(graph, graph_size, "graph");
    if (!bytes.ok()) return bytes.status();
    Options parsed;
    status = Parse(options, options_size, "options", &parsed);
    if (!status.ok()) return status;
    const auto answer = ask(client->client, *bytes, parsed, OptionsOf(call));
    return answer.ok() ? Serialize(*answer, out) : answer.status();
  });
}

// Passes serialized messages on; null if there is no callback.
template <typename Message>
std::function<void(const Message&)> PartCallback(spillway_part_fn part, void* user_data) {
  if (part == nullptr) return nullptr;
  return [part, user_data](const Message& message) {
    const std::string bytes = message.SerializeAsString();
    part(bytes.data(), bytes.size(), user_data);
  };
}

spillway_status* Inspect(spillway_client* client, const void* graph, size_t graph_size,
                         const void* options, size_t options_size, spillway_call* call,
                         spillway_part_fn on_tensors, void* user_data, spillway_buffer** summary) {
  return AskOf<v1::InspectOptions>(
      client, graph, graph_size, options, options_size, call, "summary", summary,
      [&](const Client& to, absl::string_view bytes, const v1::InspectOptions& parsed,
          const CallOptions& how) {
        const auto take = PartCallback<v1::TensorList>(on_tensors, user_data);
        return take ? to.InspectTensors(bytes, parsed, take, how) : to.Inspect(bytes, parsed, how);
      });
}

spillway_status* Simulate(spillway_client* client, const void* graph, size_t graph_size,
                          const void* options, size_t options_size, spillway_call* call,
                          spillway_buffer** report) {
  return AskOf<v1::SimulateOptions>(
      client, graph, graph_size, options, options_size, call, "report", report,
      [](const Client& to, absl::string_view bytes, const v1::SimulateOptions& parsed,
         const CallOptions& how) { return to.Simulate(bytes, parsed, how); });
}

spillway_status* Explore(spillway_client* client, const void* graph, size_t graph_size,
                         const void* options, size_t options_size, spillway_call* call,
                         spillway_part_fn on_size, void* user_data, spillway_buffer** report) {
  return AskOf<v1::ExploreOptions>(
      client, graph, graph_size, options, options_size, call, "report", report,
      [&](const Client& to, absl::string_view bytes, const v1::ExploreOptions& parsed,
          const CallOptions& how) {
        return to.Explore(bytes, parsed, PartCallback<v1::ExploredSize>(on_size, user_data), how);
      });
}

spillway_status* Diff(spillway_client* client, const void* a, size_t a_size, const void* b,
                      size_t b_size, spillway_call* call, spillway_buffer** diff_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{client, "client"}, {diff_out, "diff"}});
    if (!status.ok()) return status;
    const absl::StatusOr<absl::string_view> bytes_a = Bytes(a, a_size, "a");
    if (!bytes_a.ok()) return bytes_a.status();
    const absl::StatusOr<absl::string_view> bytes_b = Bytes(b, b_size, "b");
    if (!bytes_b.ok()) return bytes_b.status();
    const absl::StatusOr<v1::GraphDiff> diff =
        client->client.Diff(*bytes_a, *bytes_b, OptionsOf(call));
    return diff.ok() ? Serialize(*diff, diff_out) : diff.status();
  });
}

// Returns an empty message by name, with or without the package.
absl::StatusOr<std::unique_ptr<google::protobuf::Message>> NewMessage(absl::string_view name) {
  // The pool knows a file only after one of its messages was used: these cover all files.
  (void)v1::RewriteRequest::descriptor();
  (void)v1::ErrorInfo::descriptor();
  (void)v1::GraphSummary::descriptor();
  (void)v1::GraphDiff::descriptor();
  (void)v1::SimulateReport::descriptor();
  (void)v1::RunCheck::descriptor();
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          absl::StartsWith(name, kPackage) ? std::string(name) : absl::StrCat(kPackage, name));
  if (descriptor == nullptr) {
    return BadArgument("name", absl::StrCat("is ", core::Quoted(name),
                                            "; spillway.v1 has no message of that name"));
  }
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

spillway_status* FindGpuMemory(int64_t* bytes) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{bytes, "bytes"}});
    if (!status.ok()) return status;
    const absl::StatusOr<internal::ThisMachine>& machine = internal::MachineOfProcess();
    *bytes = machine.ok() ? machine->usable_bytes : 0;
    return absl::OkStatus();
  });
}

// Looks up an argument that must be one of a few words; `choices` gives their values.
template <typename Choice>
absl::Status Choose(const char* argument, absl::string_view given,
                    std::initializer_list<std::pair<absl::string_view, Choice>> choices,
                    Choice* chosen) {
  std::string words;
  for (const auto& [word, choice] : choices) {
    if (given == word) {
      *chosen = choice;
      return absl::OkStatus();
    }
    absl::StrAppend(&words, words.empty() ? "" : ", ", word);
  }
  return BadArgument(argument, absl::StrCat("is ", core::Quoted(given), "; give one of ", words));
}

absl::StatusOr<text::CheckTrace> ReadTrace(const void* run_metadata, size_t size,
                                           absl::string_view name) {
  const absl::StatusOr<absl::string_view> bytes = Bytes(run_metadata, size, name);
  return bytes.ok() ? text::ReadCheckTrace(*bytes) : bytes.status();
}

// The step of a RunMetadata, beside a simulated one if it is given.
absl::StatusOr<std::string> DrawMeasured(const void* run_metadata, size_t size,
                                         const void* simulated, size_t simulated_size) {
  const absl::StatusOr<text::CheckTrace> measured = ReadTrace(run_metadata, size, "report");
  if (!measured.ok()) return measured.status();
  v1::SimulateReport step;
  absl::Status status = Parse(simulated, simulated_size, "before", &step);
  if (!status.ok()) return status;
  plot::ChromeTrace trace;
  if (simulated_size > 0) trace.Add(step, "simulated");
  trace.AddMeasured(*measured);
  return trace.Json();
}

spillway_status* Draw(const char* name, const void* report, size_t report_size, const void* before,
                      size_t before_size, const char* format, const char* theme, const char* title,
                      spillway_buffer** picture_out) {
  return Guarded([&] {
    absl::Status status =
        CheckGiven({{name, "name"}, {format, "format"}, {picture_out, "picture"}});
    if (!status.ok()) return status;
    enum class Form { kSvg, kHtml, kTrace };
    Form form = Form::kSvg;
    status =
        Choose<Form>("format", format,
                     {{"svg", Form::kSvg}, {"html", Form::kHtml}, {"trace", Form::kTrace}}, &form);
    if (!status.ok()) return status;
    plot::PictureOptions options;
    options.format = form == Form::kHtml ? plot::Format::kHtml : plot::Format::kSvg;
    options.title = TextOrNone(title);
    status = Choose<plot::Theme>("theme", TextOrNone(theme),
                                 {{"", plot::Theme::kAuto},
                                  {"auto", plot::Theme::kAuto},
                                  {"light", plot::Theme::kLight},
                                  {"dark", plot::Theme::kDark}},
                                 &options.theme);
    if (!status.ok()) return status;
    enum class Kind { kStep, kSizes, kMeasured };
    Kind kind = Kind::kStep;
    status = Choose<Kind>("name", name,
                          {{"SimulateReport", Kind::kStep},
                           {"ExploreReport", Kind::kSizes},
                           {"RunMetadata", Kind::kMeasured}},
                          &kind);
    if (!status.ok()) return status;
    if (kind != Kind::kStep && (form == Form::kTrace) != (kind == Kind::kMeasured)) {
      return BadArgument("format", form == Form::kTrace
                                       ? "is trace, which needs a SimulateReport or a RunMetadata"
                                       : "is a picture; of a RunMetadata there is only a trace");
    }
    if (before_size > 0 && kind != Kind::kMeasured &&
        (kind == Kind::kSizes || form == Form::kTrace)) {
      return BadArgument("before", "needs a picture of a SimulateReport");
    }
    absl::StatusOr<std::string> picture;
    if (kind == Kind::kMeasured) {
      picture = DrawMeasured(report, report_size, before, before_size);
    } else if (kind == Kind::kStep) {
      v1::SimulateReport step, first;
      status = Parse(report, report_size, "report", &step);
      if (!status.ok()) return status;
      status = Parse(before, before_size, "before", &first);
      if (!status.ok()) return status;
      if (form == Form::kTrace) {
        plot::ChromeTrace trace;
        trace.Add(step);
        picture = trace.Json();
      } else {
        picture = plot::DrawStep(step, before_size > 0 ? &first : nullptr, options);
      }
    } else {
      v1::ExploreReport sizes;
      status = Parse(report, report_size, "report", &sizes);
      if (!status.ok()) return status;
      picture = plot::DrawThroughput(sizes, options);
    }
    if (!picture.ok()) return picture.status();
    *picture_out = NewBuffer(*std::move(picture));
    return absl::OkStatus();
  });
}

spillway_status* TextOfMessage(const char* name, const void* message, size_t message_size,
                               spillway_buffer** text_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{name, "name"}, {text_out, "text"}});
    if (!status.ok()) return status;
    const absl::StatusOr<absl::string_view> bytes = Bytes(message, message_size, "message");
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<std::string> text = text::TextOf(name, *bytes);
    if (text.ok()) *text_out = NewBuffer(*std::move(text));
    return text.status();
  });
}

spillway_status* Check(const void* report, size_t report_size, const void* run_metadata,
                       size_t run_metadata_size, spillway_buffer** check_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{check_out, "check"}});
    if (!status.ok()) return status;
    v1::RewriteReport parsed;
    status = Parse(report, report_size, "report", &parsed);
    if (!status.ok()) return status;
    const auto trace = ReadTrace(run_metadata, run_metadata_size, "run_metadata");
    if (!trace.ok()) return trace.status();
    const absl::StatusOr<v1::RunCheck> check = text::CheckRun(parsed, *trace);
    return check.ok() ? Serialize(*check, check_out) : check.status();
  });
}

spillway_status* MessageFromJson(const char* name, const char* json, size_t json_size,
                                 spillway_buffer** message_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{name, "name"}, {json, "json"}, {message_out, "message"}});
    if (!status.ok()) return status;
    const auto message = NewMessage(name);
    if (!message.ok()) return message.status();
    const absl::StatusOr<absl::string_view> text = Bytes(json, json_size, "json");
    if (!text.ok()) return text.status();
    const auto parsed =
        google::protobuf::util::JsonStringToMessage({text->data(), text->size()}, message->get());
    if (!parsed.ok()) {
      return BadArgument("json", absl::StrCat("is not a ", (*message)->GetTypeName(), ": ",
                                              parsed.message().as_string()));
    }
    return Serialize(**message, message_out);
  });
}

spillway_status* MessageToJson(const char* name, const void* bytes, size_t size,
                               spillway_buffer** json_out) {
  return Guarded([&] {
    absl::Status status = CheckGiven({{name, "name"}, {json_out, "json"}});
    if (!status.ok()) return status;
    const auto message = NewMessage(name);
    if (!message.ok()) return message.status();
    status = Parse(bytes, size, "message", message->get());
    if (!status.ok()) return status;
    google::protobuf::util::JsonPrintOptions options;
    options.add_whitespace = true;
    // Plans are files, and an earlier program refuses a field that it does not know, even an empty
    // one.
    options.always_print_primitive_fields = (*message)->GetDescriptor() != v1::Plan::descriptor();
    options.preserve_proto_field_names = true;
    std::string json;
    const auto printed = google::protobuf::util::MessageToJsonString(**message, &json, options);
    if (!printed.ok()) {
      return BadArgument("message", absl::StrCat("has no JSON: ", printed.message().as_string()));
    }
    *json_out = NewBuffer(std::move(json));
    return absl::OkStatus();
  });
}

// In the order of the table's fields.
constexpr CallTable kTable = {
    Version,           StatusFree,    BufferFree,       ClientOptionsNew,
    ClientOptionsFree, SetTarget,     SetUnaryMaxBytes, SetChunkBytes,
    SetMaxAttempts,    SetTls,        SetTokenFile,     SetTokenInClear,
    SetHedgeAfter,     ClientNew,     ClientFree,       CallNew,
    CallFree,          SetTimeout,    SetKeepBest,      SetRequestId,
    SetTraceparent,    SetToken,      Cancel,           SetProgress,
    RewriteGraph,      Rewrite,       GetCapabilities,  CheckHealth,
    Inspect,           Simulate,      Explore,          Diff,
    FindGpuMemory,     Draw,          TextOfMessage,    Check,
    MessageFromJson,   MessageToJson,
};

}  // namespace
}  // namespace spillway::c_api

const spillway::c_api::CallTable* spillway_internal_call_table() {
  return &spillway::c_api::kTable;
}
