#include "server/base/logging.h"

#include <grpc/support/log.h>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/stubs/logging.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::server {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
// Log supplies the rest of the object's members.
constexpr char kJsonPattern[] = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";

// With lines of some hundred bytes: a megabyte or two.
constexpr size_t kQueuedLines = 8192;

std::atomic<bool> json{false};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      break;
  }
  return spdlog::level::warn;
}

// Returns ASCII on one line for any input.
std::string ToJson(const LogFields& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, LogFields::error_handler_t::replace);
}

// Returns a value in text format: unchanged if it is one plain word, otherwise in quotes.
std::string ToText(const LogFields& value) {
  if (!value.is_string()) return ToJson(value);
  const std::string& text = value.get_ref<const std::string&>();
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isgraph(c) && c != '"' && c != '\\' && c != '=';
  });
  return plain ? text : absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

std::string TextLine(absl::string_view message, const LogFields& fields) {
  std::string line = absl::CHexEscape(message);
  for (const auto& [key, value] : fields.items())
    absl::StrAppend(&line, " ", key, "=", ToText(value));
  return line;
}

std::string JsonMembers(absl::string_view message, const LogFields& fields) {
  LogFields all = {{"message", std::string(message)}};
  all.update(fields);
  const std::string object = ToJson(all);
  return object.substr(1, object.size() - 2);
}

// gRPC logs errors that the server reports itself, in one sentence (a port in use) or as a
// request's code, so its messages are only for debugging.
void LogGrpcMessage(gpr_log_func_args* args) {
  Log(LogLevel::kDebug, absl::StrCat("grpc: ", args->message));
}

// protobuf writes a line to stderr for each invalid string of a request, whose sender gets an error
// anyway. Only messages that end the program are written at once.
void LogProtobufMessage(google::protobuf::LogLevel level, const char* file, int line,
                        const std::string& message) {
  if (level == google::protobuf::LOGLEVEL_FATAL) {
    std::fprintf(stderr, "protobuf: %s (%s:%d)\n", message.c_str(), file, line);
  } else {
    Log(LogLevel::kDebug, absl::StrCat("protobuf: ", message));
  }
}

}  // namespace

int64_t DroppedLogLines() {
  const auto pool = spdlog::thread_pool();
  return pool == nullptr ? 0 : static_cast<int64_t>(pool->overrun_counter());
}

void FlushLog(absl::Duration timeout) {
  const auto pool = spdlog::thread_pool();
  if (pool == nullptr) return;
  const absl::Time end = core::SteadyNow() + timeout;
  // A line leaves the queue shortly before it is written.
  while (pool->queue_size() > 0 && core::SteadyNow() < end) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(5));
}

void Log(LogLevel level, absl::string_view message, const LogFields& fields) {
  const spdlog::level::level_enum spdlog_level = ToSpdlog(level);
  if (!spdlog::should_log(spdlog_level)) return;
  spdlog::log(spdlog_level, "{}", json ? JsonMembers(message, fields) : TextLine(message, fields));
}

void InitLogging(const std::string& level, const std::string& format) {
  json = format == "json";
  spdlog::init_thread_pool(kQueuedLines, 1);
  auto logger =
      spdlog::create_async_nb<spdlog::sinks::stderr_sink_mt>("spillwayd");  // Never blocks.
  logger->set_pattern(json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  // Lines are not flushed one by one: stderr is unbuffered, and each flush would take a place in
  // the queue.
  std::setvbuf(stderr, nullptr, _IONBF, 0);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(&LogGrpcMessage);
  google::protobuf::SetLogHandler(&LogProtobufMessage);
}

}  // namespace spillway::server
