#include "server/access/access_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rewrite_core/base/request_names.h"
#include "rewrite_core/base/small_file.h"

namespace spillway::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Each caller has several series in every scrape.
constexpr int kMaxCallers = 1000;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kDigestDigits = 64;  // For a SHA-256 in hexadecimal.

absl::Status AccessFault(const std::string& file, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat("--access-file ", file, ": ", what));
}

// An error and its line, counted from 1.
struct FileFault {
  int line = 0;
  std::string what;
};

// Collects the first error of the text format.
class FirstFault final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int, const std::string& message) override {
    if (fault_.line != 0) return;
    // The parser quotes the text, which may be a token, so only the line is reported. For an
    // invalid value it is the line of the next token.
    fault_ = {line + 1,
              absl::StrContains(message, "no field named")
                  ? "there is no such field; the fields are those of server/README.md"
                  : "this, or the line before, is not protobuf's text format (name: \"value\", "
                    "name { ... }), or not a value of its field"};
  }

  const FileFault& fault() const { return fault_; }

 private:
  FileFault fault_;
};

bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("._-@", std::string(1, c));
         });
}

bool IsDigest(const std::string& text) {
  return text.size() == kDigestDigits && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c);
         });
}

// Checks the constraints that the format itself does not enforce.
class Checker {
 public:
  // `tree`: the position of each field of `access`.
  Checker(const AccessFile& access, TextFormat::ParseInfoTree& tree)
      : access_(access), tree_(tree) {}

  // Returns false if there is a fault, which fault() describes.
  bool Check() {
    if (access_.caller_size() == 0)
      return Fail(1, "it names no caller, so no call would be accepted");
    if (access_.caller_size() > kMaxCallers) {
      return Fail(1, absl::StrCat("it names ", access_.caller_size(), " callers and may name ",
                                  kMaxCallers, "; let some share a name"));
    }
    const FieldDescriptor* const field = Field(access_, AccessFile::kCallerFieldNumber);
    for (int i = 0; i < access_.caller_size(); ++i) {
      const int line = tree_.GetLocation(field, i).line + 1;
      if (!CheckCaller(access_.caller(i), *tree_.GetTreeForNested(field, i), line)) return false;
    }
    return true;
  }

  const FileFault& fault() const { return fault_; }

 private:
  using Tree = TextFormat::ParseInfoTree;

  static const FieldDescriptor* Field(const google::protobuf::Message& message, int number) {
    return message.GetDescriptor()->FindFieldByNumber(number);
  }

  bool Fail(int line, std::string what) {
    fault_ = {line, std::move(what)};
    return false;
  }

  bool CheckCaller(const AccessFile::Caller& caller, Tree& tree, int line) {
    if (!IsPlainName(caller.name())) {
      return Fail(line, "a caller needs a name of 1 to 64 letters, digits and any of ._-@");
    }
    if (!names_.insert(caller.name()).second) {
      return Fail(line, absl::StrCat("another caller is named ", caller.name(), ", too"));
    }
    if (caller.certificate().empty() && caller.token_sha256().empty() && !caller.anybody()) {
      return Fail(line, absl::StrCat("the caller ", caller.name(),
                                     " cannot be recognized; give certificate, "
                                     "token_sha256 or anybody"));
    }
    if (caller.anybody() && std::exchange(has_anybody_, true)) {
      return Fail(line, "another caller has anybody: true already; leave one out");
    }
    const FieldDescriptor* field = Field(caller, AccessFile::Caller::kCertificateFieldNumber);
    for (int i = 0; i < caller.certificate_size(); ++i) {
      const std::string& name = caller.certificate(i);
      const int at = tree.GetLocation(field, i).line + 1;
      if (name.empty() || name.size() > core::kMaxRequestNameBytes) {
        return Fail(at, absl::StrCat("a certificate's name has 1 to ", core::kMaxRequestNameBytes,
                                     " bytes here"));
      }
      if (!certificates_.insert(name).second) {
        return Fail(at, "this certificate is in the file twice");
      }
    }
    field = Field(caller, AccessFile::Caller::kTokenSha256FieldNumber);
    for (int i = 0; i < caller.token_sha256_size(); ++i) {
      const std::string& digest = caller.token_sha256(i);
      const int at = tree.GetLocation(field, i).line + 1;
      if (!IsDigest(digest)) {
        return Fail(at,
                    "token_sha256 is not 64 hexadecimal digits; give the SHA-256 of the token, not "
                    "the token");
      }
      if (!tokens_.insert(absl::AsciiStrToLower(digest)).second) {
        return Fail(at, "this token_sha256 is in the file twice");
      }
    }
    if (!caller.has_quota()) return true;
    field = Field(caller, AccessFile::Caller::kQuotaFieldNumber);
    return CheckQuota(caller.quota(), *tree.GetTreeForNested(field, -1));
  }

  bool CheckQuota(const AccessFile::Quota& quota, Tree& tree) {
    const google::protobuf::Reflection& values = *quota.GetReflection();
    std::vector<const FieldDescriptor*> given;
    values.ListFields(quota, &given);
    for (const FieldDescriptor* field : given) {
      const double value = field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE
                               ? values.GetDouble(quota, field)
                               : values.GetInt32(quota, field);
      if (value > 0 && std::isfinite(value)) continue;
      return Fail(tree.GetLocation(field, -1).line + 1,
                  absl::StrCat(field->name(), " is ", value,
                               " and must be above 0; leave it out for no limit"));
    }
    return true;
  }

  const AccessFile& access_;
  Tree& tree_;
  FileFault fault_;
  std::set<std::string> names_;
  std::set<std::string> certificates_;
  std::set<std::string> tokens_;
  bool has_anybody_ = false;
};

}  // namespace

absl::StatusOr<std::string> ReadAccessFile(const std::string& file) {
  absl::StatusOr<std::string> text = core::ReadSmallFile(file);
  if (!text.ok()) return AccessFault(file, text.status().message());
  return text;
}

absl::StatusOr<AccessFile> ParseAccessFile(const std::string& file, const std::string& text) {
  const auto fault = [&](const FileFault& found) {
    return AccessFault(file, absl::StrCat("line ", found.line, ": ", found.what));
  };
  FirstFault first;
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&first);
  parser.WriteLocationsTo(&tree);
  AccessFile access;
  if (!parser.ParseFromString(text, &access)) return fault(first.fault());
  Checker checker(access, tree);
  if (!checker.Check()) return fault(checker.fault());
  return access;
}

std::string DescribeCallers(const AccessFile& access) {
  std::string text;
  for (const AccessFile::Caller& caller : access.caller()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "caller ", caller.name(),
                    " certificates=", caller.certificate_size(),
                    " tokens=", caller.token_sha256_size(),
                    " anybody=", caller.anybody() ? "true" : "false");
    AccessFile::Quota quota = caller.quota();
    if (!quota.has_burst_seconds()) quota.set_burst_seconds(kDefaultBurstSeconds);
    const google::protobuf::Descriptor& fields = *quota.GetDescriptor();
    for (int i = 0; i < fields.field_count(); ++i) {
      const FieldDescriptor* field = fields.field(i);
      std::string value = "none";
      if (quota.GetReflection()->HasField(quota, field)) {
        TextFormat::PrintFieldValueToString(quota, field, -1, &value);
      }
      absl::StrAppend(&text, " ", field->name(), "=", value);
    }
  }
  return text;
}

}  // namespace spillway::server
