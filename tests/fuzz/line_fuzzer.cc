// Any bytes as one of the small texts and files that programs read: the first byte chooses which.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/files/journal_reader.h"
#include "client_lib/cli/flags/hardware_file.h"
#include "client_lib/cli/flags/option_value.h"
#include "client_lib/cli/flags/size_list.h"
#include "client_lib/cli/rewrite/saved_plans.h"
#include "client_lib/cli/run/run_cache.h"
#include "client_lib/cli/run/run_metrics.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/pem.h"
#include "rewrite_core/base/sha256.h"
#include "server/access/access_file.h"
#include "spillway/v1/options.pb.h"
#include "spillway/v1/simulate.pb.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/scratch.h"

namespace spillway::testing {
namespace {

void ReadMetrics(const std::string& text) {
  const cli::HookMetrics once = cli::AddToMetrics(text, cli::HookRun());
  const cli::HookMetrics twice = cli::AddToMetrics(once.state, cli::HookRun());
  RequireNone(twice.was_damaged ? "its own metrics are damaged" : "");
}

void ReadValues(const std::string& text) {
  (void)core::ParseBytes(text);
  v1::Feed feed;
  RequireBlamesInput(cli::AddFeed("--feed", text, cli::FeedSizes::kMayVary, &feed));
  v1::ExploreOptions sizes;
  RequireBlamesInput(cli::AddSizeLists("--sizes", {text}, &sizes));
  v1::RewriteOptions options;
  const auto* type = v1::LevelStrategy::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    RequireBlamesInput(cli::SetField("--flag", {text}, type->field(i), options.mutable_level()));
  }
}

void ReadAccess(const std::string& text) {
  const auto access = server::ParseAccessFile("access.txtpb", text);
  RequireBlamesInput(access.status());
  if (access.ok()) (void)server::DescribeCallers(*access);
}

void ReadPem(const std::string& text) {
  RequireBlamesInput(core::CheckCertificates(text));
  const size_t half = text.size() / 2;
  (void)core::FindKeyPairFault(text.substr(0, half), text.substr(half), "cert and key");
}

void ReadPlans(const std::string& text) {
  const auto plans = cli::SavedPlans::FromJson(text);
  RequireBlamesInput(plans.status());
  if (plans.ok()) (void)plans->Of(0);
}

void ReadHardware(const std::string& text) {
  static const Scratch scratch;
  v1::Hardware hardware;
  hardware.set_preset(scratch.Write("machine.json", text));
  RequireBlamesInput(cli::TakeHardwareFile(&hardware));
}

// An entry of the hook's cache, whose own digest is right.
void ReadEntry(const std::string& body) {
  static const Scratch scratch;
  static const auto* const folder =
      new absl::StatusOr<cli::Folder>(cli::OpenCacheFolder(scratch.path()));
  RequireNone(folder->ok() ? "" : folder->status().message());
  const std::string key(64, 'a');
  core::Sha256 digest;
  digest.Update(body);
  scratch.Write(key + ".entry", absl::StrCat(absl::BytesToHexString(digest.Finish()), "\n", body));
  scratch.Write(key + ".pb", "");
  const auto entry = cli::CacheEntry::Lock(**folder, key);
  RequireNone(entry.ok() ? "" : entry.status().message());
  const auto contents = entry->Load();
  for (size_t i = 0; contents.has_value() && i < contents->suffixes.size(); ++i) {
    RequireNone(contents->suffixes[i].find('/') == std::string::npos ? "" : "outside its folder");
  }
}

}  // namespace
}  // namespace spillway::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spillway::testing;
  if (size == 0) return -1;  // Not for the corpus.
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 8) {
    case 0:
      (void)spillway::cli::ParseJournalLine(text);
      break;
    case 1:
      ReadMetrics(text);
      break;
    case 2:
      ReadValues(text);
      break;
    case 3:
      ReadAccess(text);
      break;
    case 4:
      ReadPem(text);
      break;
    case 5:
      ReadPlans(text);
      break;
    case 6:
      ReadHardware(text);
      break;
    default:
      ReadEntry(text);
  }
  return 0;
}
