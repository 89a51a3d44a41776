// Owning handles of Spillway's library, and statuses as text.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_OWNER_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_OWNER_H_

#include <memory>
#include <string>
#include <string_view>

#include "client_lib/tensorflow_plugin/library.h"

namespace spillway::tensorflow_plugin {

template <typename Handle>
using Owner = std::unique_ptr<Handle, void (*)(Handle*)>;

// Frees `status` and returns its message and reason; "" for NULL.
inline std::string TakeMessage(const Library& library, spillway_status* status) {
  if (status == nullptr) return "";
  const Owner<spillway_status> owner(status, library.status_free);
  std::string text = library.status_message(status);
  if (const std::string reason = library.status_reason(status); !reason.empty()) {
    text += " [" + reason + "]";
  }
  return text;
}

inline std::string_view BytesOf(const Library& library, const spillway_buffer* buffer) {
  return {library.buffer_data(buffer), library.buffer_size(buffer)};
}

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_OWNER_H_
