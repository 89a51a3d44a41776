// Reports the process's state to the service manager that started it: systemd's Type=notify.
//
// The protocol is one text datagram to the Unix socket named by $NOTIFY_SOCKET (sd_notify(3)), so
// it is implemented here without a systemd library. Does nothing without that variable, as in a
// container or a shell. Not thread-safe: reads the environment.
#ifndef SPILLWAY_SERVER_SERVICE_NOTIFY_H_
#define SPILLWAY_SERVER_SERVICE_NOTIFY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spillway::server {

inline constexpr char kNotifyReady[] = "READY=1";
inline constexpr char kNotifyStopping[] = "STOPPING=1";

// Sends `state`. Returns an error if there is a manager that cannot be reached. Never blocks.
absl::Status NotifyServiceManager(absl::string_view state);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_SERVICE_NOTIFY_H_
