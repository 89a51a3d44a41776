// Internal. SHA-256 over pieces.
#ifndef SPILLWAY_CLIENT_LIB_INTERNAL_SHA256_H_
#define SPILLWAY_CLIENT_LIB_INTERNAL_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "openssl/evp.h"

namespace spillway::internal {

// Not thread-safe.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }

  void Update(absl::string_view bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }

  // The 32 bytes of the digest. REQUIRES: called once, last.
  std::string Finish() {
    std::string digest(EVP_MD_size(EVP_sha256()), '\0');
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return digest;
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace spillway::internal

#endif  // SPILLWAY_CLIENT_LIB_INTERNAL_SHA256_H_
