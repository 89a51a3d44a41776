#include "client_lib/internal/chunked_call.h"

#include <atomic>
#include <new>
#include <system_error>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client_lib/internal/status_conversion.h"
#include "rewrite_core/base/crc32c.h"
#include "rewrite_core/base/error.h"

namespace spillway::internal {
namespace {

absl::Status OutOfMemory() {
  return absl::ResourceExhaustedError("there is not enough memory for the call");
}

// Sends the header and the chunks. Stops if a write fails: the call is then over, and Finish gives
// the reason.
void WriteRequest(const std::vector<absl::string_view>& graphs, const Attempt& attempt,
                  ChunkStream* stream) {
  int64_t total = 0;
  for (const absl::string_view graph : graphs) total += graph.size();
  int64_t sent = 0;
  attempt.progress->Report(Stage::kSending, sent, total);
  if (!stream->WriteHeader()) return;
  for (absl::string_view graph : graphs) {
    while (!graph.empty()) {
      const absl::string_view chunk = graph.substr(0, attempt.chunk_bytes);
      if (!stream->WriteChunk(chunk)) return;
      graph.remove_prefix(chunk.size());
      sent += chunk.size();
      attempt.progress->Report(Stage::kSending, sent, total);
    }
  }
  stream->WritesDone();
  attempt.progress->Report(Stage::kRewriting);
}

}  // namespace

absl::Status BadAnswer(absl::string_view what) {
  return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_BAD_STREAM,
                     absl::StrCat("the answer of the server was damaged on its way: ", what,
                                  "; try again, and report it if it stays so"));
}

absl::Status Announce(absl::string_view graph_def, const CallLimits& limits,
                      v1::GraphHeader* header) {
  header->set_total_size_bytes(graph_def.size());
  const absl::StatusOr<uint32_t> crc32c = core::Crc32cOf(graph_def, limits.MakeStopToken());
  if (!crc32c.ok()) return crc32c.status();
  header->set_crc32c(*crc32c);
  return absl::OkStatus();
}

absl::Status CallInChunks(const std::vector<absl::string_view>& graphs, const OpenStream& open,
                          const Attempt& attempt) {
  RemoteCall call(attempt.limits, attempt.headers);
  const std::unique_ptr<ChunkStream> stream = open(call.context());
  absl::Status fault;
  std::atomic<bool> writer_failed{false};
  std::thread writer;
  // Also if something throws: destroying a thread that is not joined ends the program.
  const absl::Cleanup join = [&] {
    if (!writer.joinable()) return;
    call.context()->TryCancel();
    writer.join();
  };
  try {
    writer = std::thread([&] {
      try {
        WriteRequest(graphs, attempt, stream.get());
      } catch (const std::bad_alloc&) {
        writer_failed = true;
        call.context()->TryCancel();
      }
    });
    while (stream->Read(&fault)) {
    }
  } catch (const std::bad_alloc&) {
    fault = OutOfMemory();
  } catch (const std::system_error& error) {
    fault = absl::ResourceExhaustedError(
        absl::StrCat("no thread could be started to send the graph (", error.what(),
                     "); wait until other calls are done"));
  }
  // An invalid answer is not read further; cancelling also ends a blocked write.
  if (!fault.ok()) call.context()->TryCancel();
  if (writer.joinable()) writer.join();
  const grpc::Status status = stream->Finish();
  *attempt.pushback = call.pushback();
  if (!fault.ok()) return fault;
  if (writer_failed) return OutOfMemory();
  return FromGrpc(status, attempt.target);
}

}  // namespace spillway::internal
