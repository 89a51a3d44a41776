// What the machine of an answer calls for.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_MACHINE_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_MACHINE_TEXT_H_

#include <string>

#include "spillway/v1/hardware.pb.h"

namespace spillway::text {

// The warning that nobody named the machine; empty if it was named.
std::string AssumedText(const v1::HardwareReport& hardware);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_MACHINE_TEXT_H_
