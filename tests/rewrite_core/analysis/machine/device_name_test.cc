#include "rewrite_core/analysis/machine/device_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::core {
namespace {

struct ParseCase {
  std::string device, job, replica, task, type, index;
};

TEST(DeviceNameTest, Parses) {
  // The forms are those of TensorFlow's DeviceNameUtils::ParseFullName.
  const std::vector<ParseCase> cases = {
      {"", "", "", "", "", ""},
      {"/gpu:0", "", "", "", "GPU", "0"},
      {"/GPU:3", "", "", "", "GPU", "3"},
      {"/cpu:0", "", "", "", "CPU", "0"},
      {"/device:GPU:1", "", "", "", "GPU", "1"},
      {"/device:gpu:1", "", "", "", "GPU", "1"},
      {"/device:XLA_GPU:0", "", "", "", "XLA_GPU", "0"},
      {"/device:CPU:*", "", "", "", "CPU", "*"},
      // An index may be left out.
      {"/device:CPU", "", "", "", "CPU", ""},
      {"/job:worker", "worker", "", "", "", ""},
      {"/job:worker/task:2", "worker", "", "2", "", ""},
      {"/job:ps/replica:0/task:1/cpu:0", "ps", "0", "1", "CPU", "0"},
      {"/job:w/replica:1/task:7/device:GPU:3", "w", "1", "7", "GPU", "3"},
      {"nonsense", "", "", "", "", ""},
  };
  for (const ParseCase& c : cases) {
    SCOPED_TRACE(c.device);
    const DeviceName name = ParseDeviceName(c.device);
    EXPECT_EQ(name.job, c.job);
    EXPECT_EQ(name.replica, c.replica);
    EXPECT_EQ(name.task, c.task);
    EXPECT_EQ(name.type, c.type);
    EXPECT_EQ(name.index, c.index);
  }
}

TEST(DeviceNameTest, TellsCpusFromOthers) {
  for (const char* device : {"/cpu:0", "/CPU:0", "/device:CPU:0", "/device:cpu:5",
                             "/job:w/replica:0/task:0/device:CPU:0", "/device:CPU"}) {
    EXPECT_TRUE(IsCpuDevice(device)) << device;
  }
  for (const char* device :
       {"", "/gpu:0", "/device:GPU:0", "/device:XLA_CPU:0", "/job:cpu/task:0/gpu:0", "/job:w"}) {
    EXPECT_FALSE(IsCpuDevice(device)) << device;
  }
}

// Names that TensorFlow 2.15 imports in Python and runs on a CPU, if it exists; and names that it
// does not.
TEST(DeviceNameTest, NamesOfCpus) {
  for (const char* device :
       {"/cpu:0", "/CPU:1", "/device:CPU:0", "/device:cpu:0", "cpu:0", "CPU:0", "/device:CPU:*",
        "/device:CPU:00", "/job:a_b/replica:0/task:12/device:CPU:0", "/cpu:0/job:w",
        "/task:2/cpu:0"}) {
    EXPECT_TRUE(IsNameOfCpu(device)) << device;
  }
  for (const char* device : {"",
                             "/",
                             "//",
                             "x",
                             "nonsense",
                             "/gpu:0",
                             "/device:GPU:0",
                             "/device:XLA_CPU:0",
                             "/job:w",
                             "/device:CPU",
                             "/device:CPU:",
                             "/cpu:",
                             "/device:CPU:0x",
                             "/device:CPU:-1",
                             "/device:CPU:+1",
                             "/device:CPU: 1",
                             "/device:CPU:0 ",
                             "/device:CPU:0\n",
                             "/device:CPU:0\n\"x",
                             "/device:CPU:99999999999",
                             "/device:CPU:0:0",
                             "/DEVICE:CPU:0",
                             "/device:Cpu:0",
                             "/job:a-b/cpu:0",
                             "/job:/cpu:0",
                             "/job:1/cpu:0",
                             "/job:*/cpu:0",
                             "/replica:*/cpu:0",
                             "/task:x/cpu:0",
                             "/cpu:0/cpu:1",
                             "/gpu:0/cpu:0",
                             "/device:GPU:0/device:CPU:0",
                             "/cpu:\xd9\xa0"}) {
    EXPECT_FALSE(IsNameOfCpu(device)) << device;
  }
  EXPECT_FALSE(IsNameOfCpu(absl::string_view("/cpu:0\0", 7)));
}

TEST(DeviceNameTest, MergesTheDevicesOfABodyAndItsCall) {
  struct {
    const char *device, *call, *merged;
  } const cases[] = {
      {"", "/gpu:0", "/gpu:0"},
      {"", "x", "x"},
      {"/gpu:1", "", "/device:GPU:1"},
      {"/device:GPU", "/job:w/task:1/cpu:2", "/job:w/task:1/device:GPU:2"},
      {"/device:GPU:*", "/job:w/cpu:0", "/job:w/device:GPU:0"},
      {"/device:GPU", "/job:w", "/job:w/device:GPU:*"},
      {"/job:*/gpu:0", "/job:w/replica:0/task:0", "/job:w/replica:0/task:0/device:GPU:0"},
      {"/job:a/job:b", "/gpu:0", "/job:b/device:GPU:0"},
      {"/device:*:1", "/job:w", "/job:w"},
      {"/device:GPU:00", "/job:w", "/job:w/device:GPU:0"},
      {"/", "/job:w/gpu:0", "/job:w/device:GPU:0"},
      // TensorFlow does not know the body's, or the call's.
      {"x", "/gpu:0", "x"},
      {"//", "/gpu:0", "//"},
      {"/DEVICE:GPU:0", "/gpu:0", "/DEVICE:GPU:0"},
      {"/GPU:0/", "/job:w", "/GPU:0/"},
      {"GPU:0", "/job:w", "GPU:0"},
      {"/Gpu:0", "/job:w", "/Gpu:0"},
      {"/job:a-b", "/gpu:0", "/job:a-b"},
      {"/gpu:", "/job:w", "/gpu:"},
      {"/gpu:0", "x", "/gpu:0"},
      {"/gpu:0", "/job:", "/gpu:0"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(MergedDevice(c.device, c.call), c.merged) << c.device << " called on " << c.call;
  }
}

struct NamesCase {
  std::string wanted, device;
  bool same;
};

TEST(DeviceNameTest, NamesADeviceByThePartsThatBothGive) {
  const std::vector<NamesCase> cases = {
      {"/gpu:0", "/gpu:0", true},
      {"/gpu:0", "/device:GPU:0", true},
      {"/gpu:0", "/job:w/replica:0/task:0/device:GPU:0", true},
      {"/job:w/gpu:0", "/gpu:0", true},
      {"/job:w/task:1/gpu:0", "/job:w/replica:0/task:1/device:GPU:0", true},
      {"/gpu:0", "/gpu:1", false},
      {"/gpu:0", "/cpu:0", false},
      {"/gpu:1", "/gpu:10", false},
      {"/job:w/task:1/gpu:0", "/job:w/task:2/gpu:0", false},
      {"/job:w/gpu:0", "/job:ps/gpu:0", false},
      {"/gpu:0", "", false},  // A node without a device does not match GPU 0.
      {"", "", true},
      {"", "/gpu:0", false},
      {"/job:w", "/job:w/gpu:0", false},
  };
  for (const NamesCase& c : cases) {
    EXPECT_EQ(NamesDevice(c.wanted, c.device), c.same) << c.wanted << " and " << c.device;
    EXPECT_EQ(NamesDevice(c.device, c.wanted), c.same) << c.device << " and " << c.wanted;
  }
}

TEST(DeviceNameTest, TheHostIsTheFirstCpuOfTheSameTask) {
  EXPECT_EQ(HostDeviceOf(""), "/device:CPU:0");
  EXPECT_EQ(HostDeviceOf("/gpu:1"), "/device:CPU:0");
  EXPECT_EQ(HostDeviceOf("/job:w/device:GPU:3"), "/job:w/device:CPU:0");
  EXPECT_EQ(HostDeviceOf("/job:w/replica:1/task:7/device:GPU:3"),
            "/job:w/replica:1/task:7/device:CPU:0");
  EXPECT_EQ(HostDeviceOf("/task:2/gpu:0"), "/task:2/device:CPU:0");
}

}  // namespace
}  // namespace spillway::core
