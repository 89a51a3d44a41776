// Tells the service manager that started this process how far it is: systemd's Type=notify.
//
// The protocol is one datagram of text to the Unix socket that $NOTIFY_SOCKET names (sd_notify(3)),
// so it is spoken here, and the server needs no library of systemd. Without that variable nothing
// happens, as in a container or a shell. Not thread-safe: it reads the environment.
#ifndef SPILLWAY_SERVER_SERVICE_NOTIFY_H_
#define SPILLWAY_SERVER_SERVICE_NOTIFY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace spillway::server {

inline constexpr char kNotifyReady[] = "READY=1";
inline constexpr char kNotifyStopping[] = "STOPPING=1";

// Sends `state`. An error if there is a manager that cannot be told; never waits for it.
absl::Status NotifyServiceManager(absl::string_view state);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_SERVICE_NOTIFY_H_
