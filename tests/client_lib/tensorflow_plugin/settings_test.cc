// Settings: the environment, the file, and the sentence for each that cannot be used.
#include "client_lib/tensorflow_plugin/settings.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/testing/sizes.h"

namespace spillway::tensorflow_plugin {
namespace {

using ::spillway::testing::TempDir;
using ::testing::HasSubstr;
using Variables = std::vector<std::pair<std::string, std::string>>;

// Settings read with only these of our variables set.
Settings Read(const Variables& variables) {
  for (char** entry = environ; *entry != nullptr;) {
    const std::string name(*entry, std::string(*entry).find('='));
    if (name.rfind("SPILLWAY_", 0) != 0) {
      ++entry;
      continue;
    }
    unsetenv(name.c_str());
    entry = environ;
  }
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return ReadSettings();
}

TEST(SettingsTest, NoneAreFine) {
  const Settings settings = Read({});
  EXPECT_EQ(settings.problem, "");
  EXPECT_TRUE(settings.enabled);
  EXPECT_FALSE(settings.fail_closed);
  EXPECT_FALSE(settings.same_bits);
  EXPECT_EQ(settings.batch_size, 0);
  EXPECT_EQ(settings.gpu_memory_bytes, 0);
  EXPECT_EQ(settings.timeout_s, 60);
}

TEST(SettingsTest, Environment) {
  const Settings settings = Read({{"SPILLWAY_STRATEGY", "level"},
                                  {"SPILLWAY_JOB_BATCH_SIZE", "128"},
                                  {"SPILLWAY_GPU_MEMORY_BYTES", "16GiB"},
                                  {"SPILLWAY_HARDWARE", "v100_nvlink2"},
                                  {"SPILLWAY_OPTIONS", "{\"min_tensor_bytes\": 4096}"},
                                  {"SPILLWAY_SERVER", "host:7070"},
                                  {"SPILLWAY_FAIL_CLOSED", "yes"},
                                  {"SPILLWAY_PLUGIN", "off"},
                                  {"SPILLWAY_SAME_BITS", "1"},
                                  {"SPILLWAY_TLS", "1"},
                                  {"SPILLWAY_TIMEOUT_S", "7"}});
  EXPECT_EQ(settings.problem, "");
  EXPECT_EQ(settings.strategy, "level");
  EXPECT_EQ(settings.batch_size, 128);
  EXPECT_EQ(settings.gpu_memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(settings.hardware, "v100_nvlink2");
  EXPECT_EQ(settings.options_json, "{\"min_tensor_bytes\": 4096}");
  EXPECT_EQ(settings.server, "host:7070");
  EXPECT_TRUE(settings.fail_closed);
  EXPECT_FALSE(settings.enabled);
  EXPECT_TRUE(settings.same_bits);
  EXPECT_TRUE(settings.tls);
  EXPECT_EQ(settings.timeout_s, 7);
}

TEST(SettingsTest, SizesAreThoseOfEveryProgram) {
  const auto sizes = size_table::ReadSizes();
  EXPECT_GE(sizes.size(), size_table::kMinSizes);
  for (const auto& [text, bytes] : sizes) {
    if (text.empty()) continue;  // As if it were not set.
    const Settings settings = Read({{"SPILLWAY_GPU_MEMORY_BYTES", text}});
    EXPECT_EQ(settings.problem.empty(), bytes > 0) << text;
    EXPECT_EQ(settings.gpu_memory_bytes, bytes > 0 ? bytes : 0) << text;
  }
}

TEST(SettingsTest, TheEnvironmentCountsMoreThanTheFile) {
  const TempDir dir;
  const std::string file = dir.Write("settings.json", R"({
    "batch_size": 64, "gpu_memory_bytes": "2KiB", "fail_closed": true, "hardware": "p100_pcie",
    "options": {"scope": {"lb": 3}}})");
  const Settings settings = Read(
      {{"SPILLWAY_SETTINGS", file}, {"SPILLWAY_JOB_BATCH_SIZE", "128"}, {"SPILLWAY_HARDWARE", ""}});
  EXPECT_EQ(settings.problem, "");
  EXPECT_EQ(settings.batch_size, 128);
  EXPECT_EQ(settings.gpu_memory_bytes, 2048);
  EXPECT_TRUE(settings.fail_closed);
  EXPECT_EQ(settings.hardware, "p100_pcie");  // An empty variable is as good as none.
  EXPECT_EQ(settings.options_json, R"({"scope":{"lb":3}})");
}

TEST(SettingsTest, WhatCannotBeUsedIsNamed) {
  const TempDir dir;
  const std::string typo = dir.Write("typo.json", R"({"batch": 64})");
  const std::string bad = dir.Write("bad.json", R"({"batch_size": "many"})");
  const std::string list = dir.Write("list.json", "[1]");
  const std::string broken = dir.Write("broken.json", "{");
  const std::string large = dir.Write("large.json", std::string(2 << 20, ' '));
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const struct {
    const char* name;
    std::string value, problem;
  } cases[] = {
      {"SPILLWAY_JOB_BATCH_SIZE", "many",
       "SPILLWAY_JOB_BATCH_SIZE is 'many'; it has to be a whole number from 1 to 2147483647"},
      {"SPILLWAY_JOB_BATCH_SIZE", "0", "from 1 to 2147483647"},
      {"SPILLWAY_JOB_BATCH_SIZE", "-1", "from 1 to 2147483647"},
      {"SPILLWAY_JOB_BATCH_SIZE", "2147483648", "from 1 to 2147483647"},
      {"SPILLWAY_JOB_BATCH_SIZE", "99999999999999999999", "from 1 to 2147483647"},
      {"SPILLWAY_JOB_BATCH_SIZE", "12.5", "from 1 to 2147483647"},
      {"SPILLWAY_GPU_MEMORY_BYTES", "16G",
       "SPILLWAY_GPU_MEMORY_BYTES is '16G'; it has to be a number of bytes"},
      {"SPILLWAY_GPU_MEMORY_BYTES", "9223372036854775807GiB", "a number of bytes"},
      {"SPILLWAY_GPU_MEMORY_BYTES", "0", "a number of bytes"},
      {"SPILLWAY_FAIL_CLOSED", "maybe", "SPILLWAY_FAIL_CLOSED is 'maybe'; it has to be 1 or 0"},
      {"SPILLWAY_OPTIONS", "{", "SPILLWAY_OPTIONS is '{'; it has to be a JSON object"},
      {"SPILLWAY_TIMEOUT_S", "0", "SPILLWAY_TIMEOUT_S is '0'; it has to be a whole number"},
      {"SPILLWAY_SETTINGS", typo, "' has the setting 'batch', which does not exist"},
      {"SPILLWAY_SETTINGS", bad, "'batch_size' in '" + bad + "' is 'many'; it has to be"},
      {"SPILLWAY_SETTINGS", list, "which is not a JSON object"},
      {"SPILLWAY_SETTINGS", broken, "which is not a JSON object"},
      {"SPILLWAY_SETTINGS", large, "which cannot be read; it has to be a file of at most 1 MiB"},
      {"SPILLWAY_SETTINGS", dir / "none.json", "which cannot be read"},
      {"SPILLWAY_SETTINGS", dir / "", "which cannot be read"},
      {"SPILLWAY_SETTINGS", fifo, "which cannot be read"},  // It is not waited for.
      {"SPILLWAY_SETTINGS", "/dev/zero", "which cannot be read"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Read({{c.name, c.value}}).problem, HasSubstr(c.problem)) << c.name << c.value;
  }
}

TEST(SettingsTest, FailClosedHoldsForWhatIsWrongWithOthers) {
  EXPECT_TRUE(Read({{"SPILLWAY_FAIL_CLOSED", "1"}, {"SPILLWAY_TIMEOUT_S", "x"}}).fail_closed);
}

}  // namespace
}  // namespace spillway::tensorflow_plugin
