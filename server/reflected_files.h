// Third-party services and messages that reflection lists: reflected/README.md.
//
// Thread-safe.
#ifndef SPILLWAY_SERVER_REFLECTED_FILES_H_
#define SPILLWAY_SERVER_REFLECTED_FILES_H_

namespace spillway::server {

// Links the code that registers the files of reflected/ with protobuf at startup, which is where
// gRPC's reflection looks. The linker drops members of a static library that nothing refers to.
void LinkReflectedFiles();

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_REFLECTED_FILES_H_
