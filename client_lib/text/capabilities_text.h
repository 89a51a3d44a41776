// The output of `spillway capabilities`.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_CAPABILITIES_TEXT_H_
#define SPILLWAY_CLIENT_LIB_TEXT_CAPABILITIES_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client_lib/text/style.h"
#include "spillway/v1/rewrite_service.pb.h"

namespace spillway::text {

// `asked_by`: the version of the program that asked a server; empty if it asked itself.
std::string FormatCapabilities(const v1::GetCapabilitiesResponse& response, Style style,
                               absl::string_view asked_by = "");

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_CAPABILITIES_TEXT_H_
