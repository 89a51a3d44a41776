// Certificates for tests, created at run time: the repository contains no keys.
#ifndef SPILLWAY_TESTS_TESTING_TEST_CERTS_H_
#define SPILLWAY_TESTS_TESTING_TEST_CERTS_H_

#include <memory>
#include <string>
#include <vector>

namespace spillway::test_certs {

// A certificate and its key, both PEM.
struct CertAndKey {
  std::string cert;
  std::string key;
};

// The contents of a certificate.
struct CertRequest {
  // Its subject names in OpenSSL's form: `DNS:host`, `IP:127.0.0.1`; empty if none.
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  std::string common_name = "test";
  // Valid from an hour ago; negative days: already expired.
  int days = 1;
  // Valid from half a day ahead instead.
  bool not_yet = false;
  // An RSA key with this many bits; 0: P-256.
  int rsa_bits = 0;
  // Signed with SHA-1 instead of SHA-256.
  bool sha1 = false;
};

// A separate certificate authority.
class TestCa {
 public:
  explicit TestCa(const std::string& name);
  ~TestCa();

  // Its own certificate, PEM.
  const std::string& cert() const { return self_.cert; }
  CertAndKey Issue(const CertRequest& request = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  CertAndKey self_;
};

// A folder that is deleted with its files on destruction.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file, atomically for readers, and returns its path.
  std::string Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

}  // namespace spillway::test_certs

#endif  // SPILLWAY_TESTS_TESTING_TEST_CERTS_H_
