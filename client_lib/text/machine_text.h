// The machine of an answer.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_MACHINE_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_MACHINE_TEXT_H_

#include <string>

#include "spillway/v1/hardware.pb.h"

namespace spillway::text {

// The warning that the machine was not named; empty if it was.
std::string AssumedText(const v1::HardwareReport& hardware);

// "p100_pcie, 14.86 GiB per GPU less 10%, 64.00 GiB of host memory, 11.5 GB/s out and 11.7 GB/s
// in".
std::string HardwareText(const v1::HardwareReport& report);

// Without values of a memory table beside it.
std::string ShortHardwareText(const v1::Hardware& hardware);

// "13.37 GiB per GPU": the budget of a step.
std::string GpuBudgetText(const v1::HardwareReport& report);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_MACHINE_TEXT_H_
