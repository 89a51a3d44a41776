// A memory table of GPUs and their host, for short answers.
#ifndef SPILLWAY_CLIENT_LIB_TEXT_MEMORY_TABLE_H_
#define SPILLWAY_CLIENT_LIB_TEXT_MEMORY_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client_lib/text/style.h"

namespace spillway::text {

// Bytes, one for each column; without a value: unknown.
struct MemoryRow {
  std::string name;  // Of the GPU, as spelled in the nodes; empty if they have none.
  std::vector<std::optional<int64_t>> bytes;
};

// Formats a row for each GPU and, unless it is empty, one for the host. A row for several GPUs that
// do not get one of their own has the largest value of each column.
std::string FormatMemoryTable(const std::vector<std::string>& heading,
                              const std::vector<MemoryRow>& gpus,
                              const std::vector<std::optional<int64_t>>& host, Style style);

}  // namespace spillway::text

#endif  // SPILLWAY_CLIENT_LIB_TEXT_MEMORY_TABLE_H_
