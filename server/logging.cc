#include "server/logging.h"

#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace spillway::server {
namespace {

// gRPC reports as errors what we report ourselves, in one sentence (a port that is taken) or as
// the code of a request, so its messages are for those who debug.
void LogGrpcMessage(gpr_log_func_args* args) { spdlog::debug("grpc: {}", args->message); }

}  // namespace

void InitLogging(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("spillwayd");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);  // A log that is read by a pipe must not lag behind.
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(&LogGrpcMessage);
}

}  // namespace spillway::server
