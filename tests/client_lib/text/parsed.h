// Common parts of tests of texts: messages from their text form, and a machine.
#ifndef SPILLWAY_TESTS_CLIENT_LIB_TEXT_PARSED_H_
#define SPILLWAY_TESTS_CLIENT_LIB_TEXT_PARSED_H_

#include <cstdlib>
#include <string>

#include "google/protobuf/text_format.h"

namespace spillway::text {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) std::abort();
  return message;
}

// 8 GiB a GPU, 64 GiB of host memory.
inline constexpr char kMachine[] = R"(
  hardware {
    hardware { preset: "p100_pcie" gpu_memory_bytes: 8589934592 host_memory_bytes: 68719476736
               d2h_bytes_per_s: 12e9 h2d_bytes_per_s: 10e9 }
    device_budget_bytes: 8589934592
  })";

}  // namespace spillway::text

#endif  // SPILLWAY_TESTS_CLIENT_LIB_TEXT_PARSED_H_
