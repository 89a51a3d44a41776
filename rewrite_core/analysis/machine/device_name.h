// TensorFlow's device strings: `/gpu:0`, `/device:GPU:0`, `/job:worker/replica:0/task:1/cpu:0`.
#ifndef SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_DEVICE_NAME_H_
#define SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_DEVICE_NAME_H_

#include <array>
#include <string>

#include "absl/strings/string_view.h"

namespace spillway::core {

// The parts of a device string; a part that is not given is empty.
struct DeviceName {
  std::string job, replica, task;
  std::string type;   // Upper case: `GPU`, `CPU`, `XLA_GPU`, ...
  std::string index;  // `0`, ...
};

// Unrecognized parts are ignored: validating device strings is left to TensorFlow.
DeviceName ParseDeviceName(absl::string_view device);

// Where a node with `device` in a function's body runs if a node on `call_device` calls it, as
// MultiDeviceFunctionBodyPlacer of TensorFlow's inline_function_utils.cc says: parts that are
// missing are the call's. If TensorFlow's own, stricter parser does not know one of the two names,
// it is `device` as it is.
std::string MergedDevice(absl::string_view device, absl::string_view call_device);

// Whether this is the name of a CPU that TensorFlow imports, with or without the first slash.
bool IsNameOfCpu(absl::string_view device);

// Whether nodes on this device run on a CPU. False for the empty string.
bool IsCpuDevice(absl::string_view device);

// Whether `wanted` names the device `device`: every part that both have is equal, and either both
// have a type and an index or neither does. So `/gpu:0` names `/job:w/task:0/device:GPU:0`.
bool NamesDevice(absl::string_view wanted, absl::string_view device);
bool NamesDevice(const DeviceName& wanted, const DeviceName& device);

// The same for very many of both, without comparing each with each: NamesDevice(wanted, device)
// exactly if WantedKeys(wanted) and DeviceKeys(device) have a key in common.
using NameKeys = std::array<std::string, 8>;
NameKeys WantedKeys(const DeviceName& wanted);
NameKeys DeviceKeys(const DeviceName& device);

// Whether two device strings certainly name different devices: a part that both have differs.
bool AreOtherDevices(absl::string_view a, absl::string_view b);

// The first CPU of the same job, replica and task: `/device:CPU:0` for `/gpu:1` and for the empty
// string.
std::string HostDeviceOf(absl::string_view device);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_ANALYSIS_MACHINE_DEVICE_NAME_H_
