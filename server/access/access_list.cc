#include "server/access/access_list.h"

#include <openssl/crypto.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/sha256.h"
#include "server/access/access_file.h"
#include "server/base/logging.h"
#include "server/memory/guarded.h"

namespace spillway::server {
namespace {

// A flood of calls must not cause constant reads of the file.
constexpr absl::Duration kReadInterval = absl::Seconds(1);

absl::Status UnknownCaller(absl::string_view why) {
  return core::Error(absl::StatusCode::kUnauthenticated, v1::ERROR_REASON_UNKNOWN_CALLER, why);
}

// Returns the token of `Bearer TOKEN`; empty if the format differs.
absl::string_view TokenOf(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "bearer ";  // Case-insensitive (RFC 7235).
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return "";
  return absl::StripAsciiWhitespace(authorization.substr(kScheme.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccessList>> AccessList::Load(const std::string& file,
                                                             Metrics& metrics, const Clock& clock) {
  std::unique_ptr<AccessList> list(new AccessList(file, metrics, clock));
  const absl::MutexLock lock(&list->file_mu_);
  list->checked_at_ = list->now();
  if (absl::Status status = list->ReadAgain(); !status.ok()) return status;
  return list;
}

absl::StatusOr<std::shared_ptr<CallerAccount>> AccessList::Find(const Credentials& shown) {
  LookAtFile();
  const std::shared_ptr<const Table> known = table();
  if (!shown.authorization.empty()) {
    const absl::string_view token = TokenOf(shown.authorization.front());
    if (shown.authorization.size() > 1 || token.empty()) {
      return UnknownCaller("the metadata authorization must come once, as `Bearer TOKEN`");
    }
    core::Sha256 sha256;
    sha256.Update(token);
    const std::string digest = sha256.Finish();
    // Compares all of them, so that the time reveals nothing about the list.
    Account found;
    for (const auto& [expected, account] : known->tokens) {
      const bool same = digest.size() == expected.size() &&
                        CRYPTO_memcmp(digest.data(), expected.data(), expected.size()) == 0;
      if (same) found = account;
    }
    if (found != nullptr) return found;
    return UnknownCaller(
        "the token is not one that the server knows; ask its operator for one that is in its "
        "--access-file");
  }
  for (const std::string& name : shown.certificate_names) {
    const auto found = known->certificates.find(name);
    if (found != known->certificates.end()) return found->second;
  }
  if (known->anybody != nullptr) return known->anybody;
  if (shown.certificate_names.empty()) {
    return UnknownCaller(
        "the server requires a token (authorization: Bearer TOKEN) or a certificate that is in its "
        "--access-file, and the request has neither a token nor a certificate");
  }
  return UnknownCaller(
      absl::StrCat("the certificate of '", shown.certificate_names.front(),
                   "' is not one that the server knows; have its operator add it to "
                   "the --access-file, or give a token"));
}

void AccessList::LookAtFile() {
  // Another thread is already checking the file.
  if (!file_mu_.TryLock()) return;
  const absl::Cleanup unlock = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { file_mu_.Unlock(); };
  const absl::Time now = this->now();
  if (now - checked_at_ >= kReadInterval) {
    checked_at_ = now;
    // On any failure, out of memory included, the previous callers stay.
    const absl::Status status =
        Guarded([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return ReadAgain(); });
    const std::string warning(status.message());
    if (!status.ok() && warning != warning_) {
      Log(LogLevel::kWarn, "callers not reloaded: the previous ones stay in force",
          {{"error", warning}});
    }
    warning_ = warning;
  }
}

absl::Status AccessList::ReadAgain() {
  absl::StatusOr<std::string> text = ReadAccessFile(file_);
  if (!text.ok()) return text.status();
  if (*text == text_) return absl::OkStatus();
  const absl::StatusOr<AccessFile> access = ParseAccessFile(file_, *text);
  if (!access.ok()) return access.status();
  const bool first = text_.empty();  // No valid file is empty.
  Take(*access);
  text_ = *std::move(text);
  if (!first) {
    Log(LogLevel::kInfo, "callers reloaded", {{"file", file_}, {"callers", access->caller_size()}});
  }
  return absl::OkStatus();
}

void AccessList::Take(const AccessFile& access) {
  auto table = std::make_shared<Table>();
  std::map<std::string, Account> accounts;
  for (const AccessFile::Caller& caller : access.caller()) {
    Account& account = accounts[caller.name()];
    // A caller that stays keeps its usage.
    if (const auto old = accounts_.find(caller.name()); old != accounts_.end()) {
      account = old->second;
      account->SetQuota(caller.quota(), now());
    } else {
      account = std::make_shared<CallerAccount>(caller.name(), metrics_.OfCaller(caller.name()),
                                                caller.quota(), now());
    }
    for (const std::string& digest : caller.token_sha256()) {
      table->tokens.emplace_back(absl::HexStringToBytes(digest), account);
    }
    for (const std::string& name : caller.certificate()) table->certificates[name] = account;
    if (caller.anybody()) table->anybody = account;
  }
  accounts_ = std::move(accounts);
  const absl::MutexLock lock(&table_mu_);
  table_ = std::move(table);
}

}  // namespace spillway::server
