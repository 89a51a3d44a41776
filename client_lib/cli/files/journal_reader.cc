#include "client_lib/cli/files/journal_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client_lib/cli/base/file_error.h"
#include "client_lib/cli/files/fd_wait.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/journal_fields.h"
#include "rewrite_core/base/request_names.h"

namespace spillway::cli {
namespace {

namespace fields = core::journal;
using nlohmann::json;

constexpr char kJournalAdvice[] = "give a journal of spillwayd --journal, or its folder";
constexpr size_t kPieceBytes = 1 << 16;
// 1970 to 9999: later years do not have four digits.
constexpr int64_t kEndOfTime = 253402300800;

std::string* TextField(absl::string_view key, JournalEntry* entry) {
  const std::pair<const char*, std::string*> texts[] = {
      {fields::kStrategy, &entry->strategy}, {fields::kCode, &entry->code},
      {fields::kReason, &entry->reason},     {fields::kOutcome, &entry->outcome},
      {fields::kMachine, &entry->machine},   {fields::kCaller, &entry->caller},
      {fields::kJob, &entry->job},           {fields::kUser, &entry->user},
      {fields::kQueue, &entry->queue},       {fields::kModel, &entry->model}};
  for (const auto& [name, text] : texts) {
    if (key == name) return text;
  }
  return nullptr;
}

absl::optional<int64_t>* NumberField(absl::string_view key, JournalEntry* entry) {
  const std::pair<const char*, absl::optional<int64_t>*> numbers[] = {
      {fields::kSwappedTensors, &entry->swapped_tensors},
      {fields::kSwapOutBytes, &entry->swap_out_bytes},
      {fields::kSwapInBytes, &entry->swap_in_bytes},
      {fields::kPeakBeforeBytes, &entry->peak_before_bytes},
      {fields::kPeakAfterBytes, &entry->peak_after_bytes},
      {fields::kBudgetBytes, &entry->budget_bytes},
      {fields::kNeedBytes, &entry->need_bytes},
      {fields::kHostPeakBytes, &entry->host_peak_bytes},
      {fields::kStepBeforeNs, &entry->step_before_ns},
      {fields::kStepAfterNs, &entry->step_after_ns}};
  for (const auto& [name, number] : numbers) {
    if (key == name) return number;
  }
  return nullptr;
}

absl::optional<absl::Time> ParseJournalTime(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error) || time < absl::UnixEpoch() ||
      time >= absl::FromUnixSeconds(kEndOfTime)) {
    return absl::nullopt;
  }
  return time;
}

// Reads the members of the top-level object and ignores nested ones. It builds no tree, so a line
// costs only its fields.
class LineHandler : public nlohmann::json_sax<json> {
 public:
  explicit LineHandler(JournalEntry* entry) : entry_(entry) {}

  bool has_time() const { return has_time_; }

  bool null() override { return Other(); }
  bool boolean(bool) override { return Other(); }
  bool number_integer(number_integer_t) override { return Other(); }  // A negative number.
  bool number_unsigned(number_unsigned_t value) override {
    absl::optional<int64_t>* const field = IsMember() ? NumberField(key_, entry_) : nullptr;
    if (field == nullptr) return Other();
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
    *field = static_cast<int64_t>(value);
    return true;
  }
  bool number_float(number_float_t, const string_t&) override { return Other(); }
  bool string(string_t& value) override {
    if (IsMember() && key_ == fields::kTime) {
      const absl::optional<absl::Time> time = ParseJournalTime(value);
      has_time_ = time.has_value();
      if (time) entry_->time = *time;
      return has_time_;
    }
    std::string* const field = IsMember() ? TextField(key_, entry_) : nullptr;
    if (field == nullptr) return Other();
    *field = value.substr(0, core::kMaxRequestNameBytes);
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return ++depth_ == 1 || Other(); }
  bool key(string_t& value) override {
    if (depth_ == 1) key_ = value;
    return true;
  }
  bool end_object() override { return Leave(); }
  // A line is an object.
  bool start_array(std::size_t) override { return ++depth_ > 1 && Other(); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool IsMember() const { return depth_ == 1; }

  // A value of a type that no field above takes: valid unless the key is that of a field.
  bool Other() const {
    if (depth_ == 0) return false;
    if (depth_ > 2) return true;
    return key_ != fields::kTime && TextField(key_, entry_) == nullptr &&
           NumberField(key_, entry_) == nullptr;
  }

  bool Leave() {
    --depth_;
    return true;
  }

  JournalEntry* const entry_;
  std::string key_;
  int depth_ = 0;
  bool has_time_ = false;
};

// `standard input`, or the path.
std::string FolderAdvice() {
  return absl::StrCat("it holds no ", fields::kFile, "; ", kJournalAdvice);
}

bool IsJournalName(const std::string& name) {
  return name == fields::kFile ||
         (absl::StartsWith(name, fields::kFullPrefix) && absl::EndsWith(name, fields::kSuffix));
}

}  // namespace

absl::optional<JournalEntry> ParseJournalLine(absl::string_view line) {
  JournalEntry entry;
  LineHandler handler(&entry);
  if (!json::sax_parse(line.begin(), line.end(), &handler) || !handler.has_time()) {
    return absl::nullopt;
  }
  return entry;
}

absl::StatusOr<JournalReader> JournalReader::Open(const std::vector<std::string>& paths,
                                                  const CancellationToken& token) {
  JournalReader reader(token);
  for (const std::string& path : paths) {
    std::error_code error;
    const bool is_folder = path != "-" && std::filesystem::is_directory(path, error);
    const absl::Status status = is_folder ? reader.AddFolder(path) : reader.Add(path);
    if (!status.ok()) return status;
  }
  return reader;
}

absl::Status JournalReader::Add(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer and ignore cancellation.
  UniqueFd fd(path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) {
    return FileError(errno, "read", path, kJournalAdvice);
  }
  for (const File& file : files_) {
    struct stat other;
    if (fstat(file.fd.get(), &other) == 0 && other.st_dev == info.st_dev &&
        other.st_ino == info.st_ino) {
      return absl::OkStatus();
    }
  }
  files_.push_back({path, std::move(fd)});
  return absl::OkStatus();
}

absl::Status JournalReader::AddFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto file = std::filesystem::directory_iterator(path, error);
       !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (IsJournalName(name)) names.push_back(name);
  }
  if (error) return FileError(error.value(), "read", path, kJournalAdvice);
  if (names.empty()) return FileError(ENOENT, "read", path, FolderAdvice());
  // The names of full files contain the time; the file being written is the newest.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::make_pair(a == fields::kFile, a) < std::make_pair(b == fields::kFile, b);
  });
  for (const std::string& name : names) {
    const absl::Status status = Add((std::filesystem::path(path) / name).string());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JournalReader::ReadPieces(const File& file,
                                       const std::function<absl::Status(absl::string_view)>& take) {
  std::string piece(kPieceBytes, '\0');
  FdWaiter waiter(token_);
  while (true) {
    if (!waiter.Wait(file.fd.get(), POLLIN)) {
      return core::Error(absl::StatusCode::kCancelled, v1::ERROR_REASON_STOPPED,
                         "interrupted while reading the journal");
    }
    const ssize_t count = read(file.fd.get(), &piece[0], piece.size());
    if (count == 0) return absl::OkStatus();
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return FileError(errno, "read", file.path, kJournalAdvice);
    absl::Status status = take(absl::string_view(piece).substr(0, static_cast<size_t>(count)));
    if (!status.ok()) return status;
  }
}

absl::Status JournalReader::KeepForAnotherRead() {
  for (File& file : files_) {
    if (lseek(file.fd.get(), 0, SEEK_CUR) >= 0) continue;
    FILE* const copy = tmpfile();
    if (copy == nullptr) return FileError(errno, "keep", file.path, "set TMPDIR, or give a file");
    absl::Status status = ReadPieces(file, [&](absl::string_view piece) {
      if (fwrite(piece.data(), 1, piece.size(), copy) == piece.size()) return absl::OkStatus();
      return FileError(errno, "keep", file.path, "give a file, or times instead of durations");
    });
    if (status.ok() && fflush(copy) != 0) {
      status = FileError(errno, "keep", file.path, "give a file, or times instead of durations");
    }
    if (status.ok()) file.fd = UniqueFd(fcntl(fileno(copy), F_DUPFD_CLOEXEC, 0));
    fclose(copy);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JournalReader::Read(const std::function<void(const JournalEntry&)>& take) {
  damaged_ = DamagedLines();
  for (const File& file : files_) {
    // A pipe cannot be repositioned.
    (void)lseek(file.fd.get(), 0, SEEK_SET);
    if (absl::Status status = ReadFile(file, take); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status JournalReader::ReadFile(const File& file,
                                     const std::function<void(const JournalEntry&)>& take) {
  std::string line;
  bool too_long = false;
  int64_t number = 0;
  const auto end_line = [&] {
    ++number;
    if (line.empty() && !too_long) return;  // Skipping an empty line loses nothing.
    const absl::optional<JournalEntry> entry = too_long ? absl::nullopt : ParseJournalLine(line);
    if (entry) {
      take(*entry);
    } else if (damaged_.count++ == 0) {
      damaged_.file = file.path;
      damaged_.line = number;
    }
    line.clear();
    too_long = false;
  };
  absl::Status status = ReadPieces(file, [&](absl::string_view piece) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      const absl::string_view part = piece.substr(0, end);
      too_long = too_long || line.size() + part.size() > kMaxJournalLine;
      if (too_long) {
        line.clear();
      } else {
        line.append(part.data(), part.size());
      }
      if (end == piece.npos) break;
      end_line();
      piece.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  });
  // A server may be writing it, or was stopped in the middle.
  if (!line.empty() || too_long) end_line();
  return status;
}

}  // namespace spillway::cli
