#include "client_lib/cli/files/journal_reader.h"

#include <errno.h>

#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/input_file.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/journal_fields.h"
#include "rewrite_core/base/request_names.h"

namespace spillway::cli {
namespace {

namespace fields = core::journal;
using nlohmann::json;

constexpr char kJournalAdvice[] = "give a journal of spillwayd --journal, or its folder";
// 1970 to 9999: later years do not have four digits.
constexpr int64_t kEndOfTime = 253402300800;

constexpr absl::string_view kTexts[] = {
    fields::kStrategy, fields::kCode, fields::kReason, fields::kOutcome, fields::kMachine,
    fields::kCaller,   fields::kJob,  fields::kUser,   fields::kQueue,   fields::kModel};
constexpr absl::string_view kNumbers[] = {fields::kSwappedTensors, fields::kSwapOutBytes,
                                          fields::kSwapInBytes,    fields::kPeakBeforeBytes,
                                          fields::kPeakAfterBytes, fields::kHostPeakBytes,
                                          fields::kStepBeforeNs,   fields::kStepAfterNs};

}  // namespace

absl::optional<JournalEntry> ParseJournalLine(absl::string_view line) {
  // The fields are not nested: the contents of values are skipped without building them.
  const auto is_member = [](int depth, json::parse_event_t, const json&) { return depth <= 1; };
  const json object = json::parse(line.begin(), line.end(), is_member, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::nullopt;
  JournalEntry entry;
  const auto time = object.find(fields::kTime);
  std::string error;
  if (time == object.end() || !time->is_string() ||
      !absl::ParseTime(absl::RFC3339_full, time->get_ref<const std::string&>(), &entry.time,
                       &error) ||
      entry.time < absl::UnixEpoch() || entry.time >= absl::FromUnixSeconds(kEndOfTime)) {
    return absl::nullopt;
  }
  for (const auto& [key, value] : object.items()) {
    if (const auto* text = absl::c_find(kTexts, key); text != std::end(kTexts)) {
      if (!value.is_string()) return absl::nullopt;
      entry.texts[*text] =
          value.get_ref<const std::string&>().substr(0, core::kMaxRequestNameBytes);
    } else if (const auto* number = absl::c_find(kNumbers, key); number != std::end(kNumbers)) {
      // The server writes no negative and fractional numbers.
      if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) return absl::nullopt;
      entry.numbers[*number] = value.get<int64_t>();
    }
  }
  return entry;
}

absl::StatusOr<JournalReader> JournalReader::Open(const std::vector<std::string>& paths,
                                                  const CancellationToken& token) {
  JournalReader reader(token);
  for (const std::string& path : paths) {
    std::vector<std::string> files = {path};
    std::error_code error;
    if (path != "-" && std::filesystem::is_directory(path, error)) {
      files.clear();
      for (auto file = std::filesystem::directory_iterator(path, error);
           !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
        const std::string name = file->path().filename().string();
        const bool is_full =
            absl::StartsWith(name, fields::kFullPrefix) && absl::EndsWith(name, fields::kSuffix);
        if (is_full || name == fields::kFile) files.push_back(file->path().string());
      }
      if (error) return FileError(error.value(), "read", path, kJournalAdvice);
      if (files.empty()) {
        return FileError(absl::NotFoundError(absl::StrCat("it holds no ", fields::kFile)), path,
                         kJournalAdvice);
      }
      // The names of full files contain the time, and are less than that of the current file.
      absl::c_sort(files);
    }
    for (std::string& file : files) {
      const bool is_known = absl::c_any_of(reader.paths_, [&](const std::string& other) {
        return other == file || std::filesystem::equivalent(other, file, error);
      });
      if (!is_known) reader.paths_.push_back(std::move(file));
    }
  }
  return reader;
}

absl::Status JournalReader::Read(const std::function<void(const JournalEntry&)>& take) {
  damage_ = Damage();
  for (const std::string& path : paths_) {
    std::string& bytes = kept_[path];
    if (bytes.empty()) {
      absl::StatusOr<std::string> read =
          ReadBytes(path, FileKind::kJournal, kJournalAdvice, token_);
      if (!read.ok()) return read.status();
      bytes = *std::move(read);
    }
    int64_t number = 0;
    for (const absl::string_view line : absl::StrSplit(bytes, '\n')) {
      ++number;
      if (line.empty()) continue;  // Skipping an empty line loses nothing.
      const auto entry = line.size() > kMaxJournalLine ? absl::nullopt : ParseJournalLine(line);
      if (entry) {
        take(*entry);
      } else if (damage_.count++ == 0) {
        damage_.first = absl::StrCat("line ", number, " of ",
                                     path == "-" ? "standard input" : core::Quoted(path));
      }
    }
    std::error_code error;
    if (path != "-" && std::filesystem::is_regular_file(path, error)) kept_.erase(path);
  }
  return absl::OkStatus();
}

}  // namespace spillway::cli
