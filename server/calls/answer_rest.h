// The bytes that follow an answer's messages, sent in parts without copying. Each part keeps them
// alive until gRPC has sent it.
//
// Thread safety: none.
#ifndef SPILLWAY_SERVER_CALLS_ANSWER_REST_H_
#define SPILLWAY_SERVER_CALLS_ANSWER_REST_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace spillway::server {

class AnswerRest {
 public:
  AnswerRest() = default;
  AnswerRest(int field, std::shared_ptr<const std::string> bytes)
      : field_(field), bytes_(std::move(bytes)) {}

  size_t bytes_left() const { return bytes_ == nullptr ? 0 : bytes_->size() - taken_; }

  // Returns the next part, as the only field of a message.
  grpc::ByteBuffer TakePart();

 private:
  int field_ = 0;
  std::shared_ptr<const std::string> bytes_;
  size_t taken_ = 0;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_CALLS_ANSWER_REST_H_
