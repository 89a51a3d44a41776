// What reflection tells of services and messages that are not ours: reflected/README.md.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_REFLECTED_FILES_H_
#define SPILLWAY_SERVER_REFLECTED_FILES_H_

namespace spillway::server {

// Keeps in the program what registers the files of reflected/ with protobuf when it starts, which
// is where gRPC's reflection looks. A linker leaves out of a static library what nothing refers to.
void LinkReflectedFiles();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REFLECTED_FILES_H_
