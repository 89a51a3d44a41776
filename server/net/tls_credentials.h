// TLS for a listener, with certificates that are reloaded when their files change.
//
// gRPC asks for certificates at each new connection. The files are checked then, at most once a
// second, and loaded if they are valid (tls_files.h); while they are not, as in the middle of a
// rotation, the previous certificates stay in force and a log line says why. Open connections are
// not affected. The minimum version is TLS 1.2.
//
// gRPC's FileWatcherCertificateProvider is not used because in 1.51 it passes on a certificate and
// a key that do not match, and every connection then fails until they do.
#ifndef SPILLWAY_SERVER_NET_TLS_CREDENTIALS_H_
#define SPILLWAY_SERVER_NET_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/net/tls_files.h"

namespace spillway::server {

// Returns credentials for one listener; each listener needs its own. With `files.client_ca`,
// clients without a certificate that it signed are rejected. `clock` must outlive them. Errors:
// those of LoadTlsFiles.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(const TlsFiles& files,
                                                                            const Clock& clock);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_TLS_CREDENTIALS_H_
