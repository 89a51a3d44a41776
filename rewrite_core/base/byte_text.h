// Sizes in bytes, for people.
#ifndef SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
#define SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_

#include <cstdint>
#include <string>

namespace spillway::core {

// `14.86 GiB`, `944.01 MiB`, `512 bytes`: in the largest binary unit of which there is one.
std::string BytesText(int64_t bytes);

}  // namespace spillway::core

#endif  // SPILLWAY_REWRITE_CORE_BASE_BYTE_TEXT_H_
