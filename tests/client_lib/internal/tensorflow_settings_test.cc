// tests/testing/tensorflow_settings.txt has the cases, for Python, too.
#include "client_lib/internal/tensorflow_settings.h"

#include <stdlib.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spillway::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Setting {
  std::string variable, value, warning;
};

std::vector<Setting> SettingCases() {
  std::vector<Setting> cases;
  std::ifstream file(SPILLWAY_TEST_GRAPHS "/../testing/tensorflow_settings.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('='), bar = line.find('|');
    cases.push_back(
        {line.substr(0, equals), line.substr(equals + 1, bar - equals - 1), line.substr(bar + 1)});
  }
  return cases;
}

class TensorflowSettingsTest : public ::testing::Test {
 protected:
  TensorflowSettingsTest() { Unset(); }
  ~TensorflowSettingsTest() override { Unset(); }

  void Unset() const {
    for (const Setting& one : cases_) unsetenv(one.variable.c_str());
  }

  const std::vector<Setting> cases_ = SettingCases();
};

TEST_F(TensorflowSettingsTest, EachValueOfEach) {
  ASSERT_GT(cases_.size(), 20u);
  for (const Setting& one : cases_) {
    setenv(one.variable.c_str(), one.value.c_str(), 1);
    const std::vector<std::string> expected =
        one.warning.empty() ? std::vector<std::string>{} : std::vector<std::string>{one.warning};
    EXPECT_EQ(SettingWarnings(), expected) << one.variable << "=" << one.value;
    unsetenv(one.variable.c_str());
    EXPECT_THAT(SettingWarnings(), IsEmpty());
  }
}

TEST_F(TensorflowSettingsTest, ALimitIsANumberOfMib) {
  const auto mib = [](const std::string& value) {
    return WorkspaceLimitMib("TF_CUDNN_WORKSPACE_LIMIT_IN_MB" + value);
  };
  EXPECT_EQ(mib("=1"), 1);
  EXPECT_EQ(mib("=1073741824"), 1 << 30);
  for (const char* odd : {"", "=", "=0", "=-1", "=x", "=1 2", "=1\n", "=1073741825", "2=3",
                          "=99999999999999999999999"}) {
    EXPECT_EQ(mib(odd), 0) << odd;
  }
  EXPECT_EQ(WorkspaceLimitMib("TF_GPU_HOST_MEM_LIMIT_IN_MB=1"), 0);
  EXPECT_EQ(WorkspaceLimitMib(""), 0);
}

TEST_F(TensorflowSettingsTest, TheLeastPlanLimitsWorkspaces) {
  const auto limit = [] {
    const char* const value = getenv(kWorkspaceLimit);
    return std::string(value == nullptr ? "" : value);
  };
  unsetenv(kWorkspaceLimit);
  EXPECT_EQ(LimitWorkspaces(0), "");  // The plan has none.
  EXPECT_EQ(limit(), "");
  for (const auto& [variable, value] :
       {std::pair("TF_DETERMINISTIC_OPS", "1"), std::pair("TF_CUDNN_USE_AUTOTUNE", "0")}) {
    setenv(variable, value, 1);
    EXPECT_EQ(LimitWorkspaces(256), "");
    EXPECT_EQ(limit(), "") << variable;  // Convolutions would fail.
    unsetenv(variable);
  }
  setenv(kWorkspaceLimit, "100", 1);
  EXPECT_EQ(LimitWorkspaces(64), "");
  EXPECT_EQ(limit(), "100");      // The job's own.
  setenv(kLimitOfRun, "128", 1);  // Of another plan: the job has set 100 since.
  EXPECT_EQ(LimitWorkspaces(64), "");
  EXPECT_EQ(limit(), "100");
  unsetenv(kLimitOfRun);
  unsetenv(kWorkspaceLimit);
  ReserveWorkspaceLimit();
  EXPECT_EQ(limit(), "");
  EXPECT_EQ(LimitWorkspaces(256), "");
  EXPECT_EQ(limit(), "256");
  ReserveWorkspaceLimit();
  EXPECT_EQ(limit(), "256");
  EXPECT_EQ(LimitWorkspaces(512), "");
  EXPECT_EQ(limit(), "256");
  EXPECT_THAT(LimitWorkspaces(64), HasSubstr("set TF_CUDNN_WORKSPACE_LIMIT_IN_MB=64 before"));
  EXPECT_EQ(limit(), "64");
  unsetenv(kWorkspaceLimit);
}

// In a process of its own, since its settings stay.
TEST_F(TensorflowSettingsTest, ALimitOfRunIsLowered) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv(kWorkspaceLimit, "256", 1);
        setenv(kLimitOfRun, "256", 1);
        const bool larger = LimitWorkspaces(512).empty() && VariableIs(kWorkspaceLimit, "256");
        const bool smaller = !LimitWorkspaces(64).empty() && VariableIs(kWorkspaceLimit, "64");
        std::exit(larger && smaller ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(TensorflowSettingsTest, EachIsSaid) {
  setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true", 1);
  setenv("TF_CUDNN_USE_AUTOTUNE", "0", 1);
  EXPECT_THAT(SettingWarnings(), ElementsAre(HasSubstr("TF_FORCE_GPU_ALLOW_GROWTH is true"),
                                             HasSubstr("TF_CUDNN_USE_AUTOTUNE is off")));
}

}  // namespace
}  // namespace spillway::internal
