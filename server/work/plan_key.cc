#include "server/work/plan_key.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/canonical_form.h"

namespace spillway::server {
namespace {

constexpr size_t kKeyBytes = 16;  // For AES-128; its nonce has 12.
constexpr size_t kTagBytes = 16;

// The process's AES key and nonce. The nonce may be reused because tags do not leave the process.
struct Secret {
  Secret() : ok(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1) {}

  std::array<unsigned char, kKeyBytes + 12> bytes;
  const bool ok;
};

// GMAC: the tag of AES-GCM over data that is authenticated but not encrypted.
class Gmac {
 public:
  explicit Gmac(const Secret& secret)
      : context_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free),
        ok_(secret.ok && context_ != nullptr &&
            EVP_EncryptInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr, secret.bytes.data(),
                               secret.bytes.data() + kKeyBytes) == 1) {}

  void Update(absl::string_view bytes) {
    int ignored = 0;
    ok_ = ok_ && EVP_EncryptUpdate(context_.get(), nullptr, &ignored,
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size())) == 1;
  }

  // Returns an empty string if OpenSSL has failed.
  std::string Finish() {
    std::string tag(kTagBytes, '\0');
    auto* const data = reinterpret_cast<unsigned char*>(&tag[0]);
    int ignored = 0;
    ok_ = ok_ && EVP_EncryptFinal_ex(context_.get(), data, &ignored) == 1 &&
          EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, data) == 1;
    return ok_ ? tag : std::string();
  }

 private:
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_;
  bool ok_;
};

}  // namespace

absl::StatusOr<std::string> PlanKey(absl::string_view graph, absl::string_view options,
                                    const core::StopToken& stop) {
  static const Secret secret;
  Gmac gmac(secret);
  absl::Status status = core::WriteCanonicalForm(
      graph, stop, [&gmac](absl::string_view piece) { gmac.Update(piece); });
  if (!status.ok()) return status;
  gmac.Update(options);
  gmac.Update(absl::StrCat(" ", options.size()));  // The end of the graph.
  std::string key = gmac.Finish();
  if (!key.empty()) return key;
  return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                     "OpenSSL cannot compute AES-GCM on this host");
}

}  // namespace spillway::server
