// TLS for a listener, with certificates that are read again when their files change.
//
// gRPC asks for certificates at each new connection. The files are looked at then, at most once a
// second, and taken if they are sound (tls_files.h); as long as they are not, as in the middle of a
// rotation, those that were there before are kept and a line in the log says why. Connections that
// stand are not touched. TLS 1.2 is the oldest version taken.
//
// Why not gRPC's FileWatcherCertificateProvider: in 1.51 it hands on a certificate and a key that
// do not match, and then every connection fails until they do.
#ifndef SPILLWAY_SERVER_TLS_CREDENTIALS_H_
#define SPILLWAY_SERVER_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "server/clock.h"
#include "server/tls_files.h"

namespace spillway::server {

// For one listener: each needs its own. With `files.client_ca`, clients without a certificate that
// it signed are refused. `clock` must outlive them. Errors: those of LoadTlsFiles.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(const TlsFiles& files,
                                                                            const Clock& clock);

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_TLS_CREDENTIALS_H_
