// The program's operator new and delete: malloc and free, which report to the thread's
// MemoryAccount. Linked into spillwayd, not into spillway_server, whose users may define their own.
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "server/memory/memory_account.h"

// Not inlined: GCC would warn that memory from malloc is passed to operator delete.
[[gnu::noinline]] void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  auto* const account = spillway::server::MemoryAccount::Current();
  if (account != nullptr) account->Charge(static_cast<int64_t>(malloc_usable_size(memory)));
  return memory;
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  auto* const account = spillway::server::MemoryAccount::Current();
  if (account != nullptr) account->Discharge(static_cast<int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
