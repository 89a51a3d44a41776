#include "server/memory/guarded.h"

#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "server/memory/memory_account.h"

namespace spillway::server {

absl::Status CaughtException() {
  const MemoryAccount::Scope nobody(nullptr);  // The error message may exceed the budget, too.
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED,
        "the server does not have enough memory for this graph now; try again later");
  } catch (const std::exception& error) {
    return core::Error(
        absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
        absl::StrCat("unexpected ", core::Quoted(error.what()), " in the core; please report it"));
  }
}

}  // namespace spillway::server
