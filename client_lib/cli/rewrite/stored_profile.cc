#include "client_lib/cli/rewrite/stored_profile.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/files/output_file.h"
#include "client_lib/internal/graph_identity.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "spillway/v1/check.pb.h"

namespace spillway::cli {
namespace {

constexpr absl::string_view kProfilePrefix = "spillway-profile-";
constexpr absl::string_view kProfileSuffix = ".pb";
// Digits of the hash in a file's name: enough to distinguish the graphs of a folder.
constexpr size_t kProfileHashDigits = 16;

std::string FileNameOf(absl::string_view sha256) {
  return absl::StrCat(kProfilePrefix, sha256.substr(0, kProfileHashDigits), kProfileSuffix);
}

// The parts of a step that determine its sizes, in a fixed order.
v1::Step FedIn(const v1::Step& step) {
  v1::Step fed;
  if (step.has_batch_size()) fed.set_batch_size(step.batch_size());
  *fed.mutable_feeds() = step.feeds();
  std::sort(fed.mutable_feeds()->begin(), fed.mutable_feeds()->end(),
            [](const v1::Feed& a, const v1::Feed& b) { return a.name() < b.name(); });
  return fed;
}

bool FeedTheSame(const v1::Step& a, const v1::Step& b) {
  return FedIn(a).SerializeAsString() == FedIn(b).SerializeAsString();
}

// Describes the feeds of a step for people.
std::string FedText(const v1::Step& step) {
  std::string text = step.has_batch_size() ? absl::StrCat("--batch-size ", step.batch_size()) : "";
  if (step.feeds_size() > 0) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", step.feeds_size(), " of --feed");
  }
  return text.empty() ? "neither --batch-size nor --feed" : text;
}

}  // namespace

absl::StatusOr<std::string> StoreProfile(const InputPath& beside, absl::string_view graph_def,
                                         const v1::Step& step, absl::string_view profile,
                                         const CancellationToken& token) {
  const absl::StatusOr<std::string> sha256 = internal::GraphSha256(graph_def);
  if (!sha256.ok()) return sha256.status();
  v1::StoredProfile stored;
  stored.set_graph_sha256(*sha256);
  *stored.mutable_step() = FedIn(step);
  stored.set_profile(profile.data(), profile.size());
  const std::string path = (std::filesystem::path(beside.Folder()) / FileNameOf(*sha256)).string();
  const auto outputs = CreateOutputs({path}, token);
  if (!outputs.ok()) return outputs.status();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    stored.SerializeToCodedStream(&coded);
  }
  if (absl::Status status = WriteOutputs(*outputs, {bytes}); !status.ok()) return status;
  return path;
}

StoredProfiles StoredProfiles::Beside(const InputPath& input) {
  StoredProfiles profiles;
  if (input.is_standard_input()) return profiles;
  profiles.folder_ = input.Folder();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(profiles.folder_, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    // Opening a named pipe might block.
    std::error_code no_file;
    if (!entry->is_regular_file(no_file)) continue;
    if (absl::StartsWith(name, kProfilePrefix) && absl::EndsWith(name, kProfileSuffix) &&
        name.size() == kProfilePrefix.size() + kProfileHashDigits + kProfileSuffix.size()) {
      profiles.names_.push_back(name);
    }
  }
  std::sort(profiles.names_.begin(), profiles.names_.end());
  return profiles;
}

std::string StoredProfiles::AddTo(absl::string_view graph_def, v1::Step* step) const {
  if (names_.empty() || !step->profile().empty()) return "";
  const absl::StatusOr<std::string> sha256 = internal::GraphSha256(graph_def);
  if (!sha256.ok()) return "";
  const std::string name = FileNameOf(*sha256);
  if (!std::binary_search(names_.begin(), names_.end(), name)) return "";
  const std::string path = (std::filesystem::path(folder_) / name).string();
  const absl::StatusOr<std::string> bytes = ReadBytes(
      path, FileKind::kProfile, "delete it, or give --no-stored-profile", CancellationToken());
  if (!bytes.ok()) return std::string(bytes.status().message());
  v1::StoredProfile stored;
  if (!stored.ParseFromString(*bytes) || stored.graph_sha256() != *sha256) {
    return absl::StrCat("the profile ", path,
                        " is damaged or belongs to another graph; ignored. Delete it");
  }
  if (!FeedTheSame(stored.step(), *step)) {
    return absl::StrCat("the profile ", path, " is not used: it was traced with ",
                        FedText(stored.step()), ", this step has ", FedText(*step));
  }
  step->set_profile(std::move(*stored.mutable_profile()));
  return absl::StrCat("times and sizes of a run are taken from ", path,
                      "; --no-stored-profile ignores them");
}

std::string StoredProfiles::Contents() const {
  std::string contents;
  for (const std::string& name : names_) {
    const absl::StatusOr<std::string> bytes =
        ReadBytes((std::filesystem::path(folder_) / name).string(), FileKind::kProfile, "",
                  CancellationToken());
    absl::StrAppend(&contents, name, ":", bytes.ok() ? bytes->size() : 0, ":",
                    bytes.ok() ? *bytes : std::string());
  }
  return contents;
}

}  // namespace spillway::cli
