// Internal. What is behind the opaque handles that both libraries of the C API read: libspillway.so
// (the functions) and libspillway_client.so (the work). Plain data: made and freed by the latter
// alone, so that one allocator sees both ends.
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
  bool permanent = false;  // Made once, for when no memory or no library is there; never freed.
};

struct spillway_buffer {
  std::string bytes;
};

#endif  // SPILLWAY_CLIENT_LIB_C_API_HANDLES_H_
