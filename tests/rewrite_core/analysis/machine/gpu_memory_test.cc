#include "rewrite_core/analysis/machine/gpu_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "tests/testing/core_test_util.h"

namespace spillway::core {
namespace {

using ::testing::ElementsAre;
using testing::IsInvalid;

const std::vector<std::string>& Gpus() {
  static const auto* const kGpus = new std::vector<std::string>{"/job:worker/task:0/device:GPU:0",
                                                                "/job:worker/task:0/device:GPU:1",
                                                                "/job:worker/task:1/device:GPU:1"};
  return *kGpus;
}

absl::StatusOr<std::vector<int64_t>> Find(const std::string& text) {
  v1::Hardware options;
  if (!google::protobuf::TextFormat::ParseFromString(text, &options)) std::abort();
  return FindGpuMemories(Gpus(), options, StopToken());
}

TEST(GpuMemoryTest, AnIndexIsThatGpuOfEveryTask) {
  EXPECT_THAT(*Find(""), ElementsAre(0, 0, 0));
  EXPECT_THAT(*Find("gpu_memories { device: '/gpu:1' gpu_memory_bytes: 7 }"), ElementsAre(0, 7, 7));
  EXPECT_THAT(*Find("gpu_memories { device: '/task:1/gpu:1' gpu_memory_bytes: 7 }"
                    "gpu_memories { device: '/gpu:0' gpu_memory_bytes: 9 }"),
              ElementsAre(9, 0, 7));
}

TEST(GpuMemoryTest, WhatNamesNoGpuOrTwiceOneIsAnError) {
  EXPECT_THAT(Find("gpu_memories { device: '/gpu:2' gpu_memory_bytes: 7 }"),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, "/gpu:2"));
  EXPECT_THAT(Find("gpu_memories { device: '/cpu:0' gpu_memory_bytes: 7 }"),
              IsInvalid(v1::ERROR_REASON_NAME_MATCHES_NOTHING, "/cpu:0"));
  EXPECT_THAT(Find("gpu_memories { device: '/gpu:1' gpu_memory_bytes: 7 }"
                   "gpu_memories { device: '/task:0/gpu:1' gpu_memory_bytes: 7 }"),
              IsInvalid(v1::ERROR_REASON_BAD_OPTION, "/job:worker/task:0/device:GPU:1"));
  EXPECT_THAT(Find("gpu_memories { device: '/gpu:1' }"),
              IsInvalid(v1::ERROR_REASON_BAD_OPTION, "0 bytes"));
}

}  // namespace
}  // namespace spillway::core
