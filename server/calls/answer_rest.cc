#include "server/calls/answer_rest.h"

#include <grpcpp/support/slice.h>

#include <algorithm>
#include <utility>

#include "server/base/wire.h"

namespace spillway::server {
namespace {

// From 64 KiB to 1 MiB the rate is the same (measured: 435 to 550 MB/s on loopback); this takes the
// fewest messages.
constexpr size_t kPartBytes = 1 << 20;

}  // namespace

grpc::ByteBuffer AnswerRest::TakePart() {
  const size_t size = std::min(kPartBytes, bytes_left());
  grpc::Slice part = SharedSlice(bytes_, taken_, size);
  taken_ += size;
  return FieldToBuffer("", field_, std::move(part));
}

}  // namespace spillway::server
