// Loads libspillway_client.so, from beside this library and from nowhere else.
//
// It needs Debian's protobuf, gRPC, Abseil and RE2. A program that is linked with TensorFlow has
// other copies of these, with the same names, in its global scope, and the loader would bind ours
// to them. So the library is loaded into a separate scope (RTLD_LOCAL), and if there are such
// copies, its own dependencies come first (RTLD_DEEPBIND). Only then: under RTLD_DEEPBIND the
// library also uses libc's malloc if the program has replaced it, and memory that libc allocates
// internally (strdup) is freed by the other one.
#include <dlfcn.h>
#include <limits.h>
#include <link.h>

#include <cstring>
#include <string>

#include "client_lib/c_api/call_table.h"
#include "client_lib/c_api/handles.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPILLWAY_MAY_BIND_DEEPLY 0  // The sanitizers refuse it: it hides their malloc.
#else
#define SPILLWAY_MAY_BIND_DEEPLY 1
#endif

namespace spillway::c_api {
namespace {

constexpr char kLibrary[] = "libspillway_client.so." SPILLWAY_SOVERSION;
constexpr int32_t kFailedPrecondition = 9;  // gRPC's number.

// A symbol of each library that TensorFlow exports or may export, and the file that has our copy.
constexpr struct {
  const char* symbol;
  const char* file;
} kForeign[] = {
    {"_ZN6google8protobuf8internal13VerifyVersionEiiPKc", "libprotobuf.so"},
    {"grpc_init", "libgrpc.so"},
    {"_ZN3re23RE2C1EPKc", "libre2.so"},
    {"SSL_CTX_new", "libssl.so"},
    {"EVP_DigestInit_ex", "libcrypto.so"},
};

std::string FileOf(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

bool HasForeignCopies() {
  for (const auto& entry : kForeign) {
    const void* found = dlsym(RTLD_DEFAULT, entry.symbol);
    if (found == nullptr) continue;
    const std::string path = FileOf(found);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.compare(0, std::strlen(entry.file), entry.file) != 0) return true;
  }
  return false;
}

// Returns the absolute folder of this library; "" if the loader does not know it. The name by which
// it was loaded may be relative to a former working directory, and dlopen would search for a name
// without a folder.
std::string OwnFolder() {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&LoadCallTable), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return "";
  }
  char folder[PATH_MAX] = "";
  if (dlinfo(map, RTLD_DI_ORIGIN, folder) != 0 || folder[0] != '/') return "";
  return folder;
}

struct Loaded {
  const CallTable* table = nullptr;
  spillway_status* failure = nullptr;
};

Loaded Load() {
  const std::string folder = OwnFolder();
  const std::string path = folder + "/" + kLibrary;
  // RTLD_NOW: symbols are bound now, regardless of libraries loaded later.
  int mode = RTLD_NOW | RTLD_LOCAL;
  if (SPILLWAY_MAY_BIND_DEEPLY && HasForeignCopies()) mode |= RTLD_DEEPBIND;
  std::string why;
  if (folder.empty()) {
    why = "the folder of libspillway.so is not known";
  } else if (void* library = dlopen(path.c_str(), mode)) {
    if (void* getter = dlsym(library, "spillway_internal_call_table")) {
      const auto* table = reinterpret_cast<decltype(&spillway_internal_call_table)>(getter)();
      if (std::strcmp(table->version(), SPILLWAY_VERSION) == 0) return {table, nullptr};
      why = path + " is of version " + table->version() + " and this library of " SPILLWAY_VERSION;
    }
  }
  if (why.empty()) {
    const char* error = dlerror();
    why = error == nullptr ? path : error;
  }
  auto* failure = new spillway_status();
  failure->code = kFailedPrecondition;
  failure->message = "the Spillway client library cannot be loaded (" + why +
                     "); install it beside libspillway.so, of the same version";
  failure->permanent = true;
  return {nullptr, failure};
}

}  // namespace

const CallTable* LoadCallTable(spillway_status** failure) {
  static const Loaded* const loaded = new Loaded(Load());
  *failure = loaded->failure;
  return loaded->table;
}

}  // namespace spillway::c_api
