// A library that exports functions of protobuf, gRPC, RE2 and OpenSSL of its own, as TensorFlow
// does for some of them. These end the process: ours must never be bound to them.
#include <stdio.h>
#include <stdlib.h>

namespace {
[[noreturn]] void Trap(const char* name) {
  fprintf(stderr, "bound to a foreign %s\n", name);
  abort();
}
}  // namespace

namespace google::protobuf {
namespace internal {
// Called by the generated code of every message.
void VerifyVersion(int, int, const char*) { Trap("VerifyVersion"); }
}  // namespace internal
class MessageLite {
 public:
  bool ParseFromArray(const void* data, int size);
};
bool MessageLite::ParseFromArray(const void*, int) { Trap("MessageLite::ParseFromArray"); }
}  // namespace google::protobuf

extern "C" {
void grpc_init() { Trap("grpc_init"); }
void* EVP_MD_CTX_new() { Trap("EVP_MD_CTX_new"); }
void* SSL_CTX_new(const void*) { Trap("SSL_CTX_new"); }
int use_foreign_names() { return 0; }
}
