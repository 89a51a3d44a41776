// Internal. The opaque handles that both libraries of the C API read: libspillway.so (the
// functions) and libspillway_client.so (the implementation). Plain data, created and freed only by
// the latter, so that a single allocator is involved.
#ifndef SPILLWAY_CLIENT_LIB_C_API_HANDLES_H_
#define SPILLWAY_CLIENT_LIB_C_API_HANDLES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

struct spillway_status {
  int32_t code = 0;
  std::string message;
  std::string reason;
  std::vector<std::pair<std::string, std::string>> metadata;  // Sorted by key.
  bool permanent = false;  // A static status for lack of memory or of the library; never freed.
};

struct spillway_buffer {
  std::string bytes;
};

#endif  // SPILLWAY_CLIENT_LIB_C_API_HANDLES_H_
