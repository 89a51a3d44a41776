#include "client_lib/cli/run/run_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client_lib/cli/base/file_error.h"
#include "rewrite_core/base/sha256.h"

namespace spillway::cli {
namespace {

constexpr char kEntrySuffix[] = ".entry";
constexpr char kFailed[] = "failed";  // No digest begins like this.
constexpr char kCacheAdvice[] =
    "give --cache-dir (or SPILLWAY_CACHE_DIR) a folder of your own that only you may write to";
// Digests and a note: a few KiB. A larger file is not an entry.
constexpr size_t kMaxEntryBytes = 16 << 20;
// For a stored file, a graph or its report. A graph has at most 2 GiB; its text form is longer.
constexpr size_t kMaxFileBytes = size_t{16} << 30;
constexpr size_t kKeyLength = 64;  // SHA-256, as hex digits.
// Other users must not write to a cached graph, nor should the job do so by mistake.
constexpr mode_t kCacheFileMode = 0400;
constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;

std::string DigestOf(absl::string_view bytes) {
  core::Sha256 digest;
  digest.Update(bytes);
  return absl::BytesToHexString(digest.Finish());
}

// With `followed`, `path` may be a link to the folder, because the user named it. A link in place
// of a default folder is refused, since another user may have created it.
absl::StatusOr<Folder> OpenPrivateFolder(const std::string& path, bool followed) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return FileError(errno, "create the cache folder", path, kCacheAdvice);
  }
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (followed ? 0 : O_NOFOLLOW);
  Folder folder{path, UniqueFd(open(path.c_str(), flags))};
  struct stat info;
  if (folder.fd.get() < 0 || fstat(folder.fd.get(), &info) != 0) {
    return FileError(errno, "use the cache folder", path, kCacheAdvice);
  }
  if (info.st_uid != geteuid()) {
    return FileError(EPERM, "use the cache folder", path,
                     absl::StrCat("it belongs to user ", info.st_uid, "; ", kCacheAdvice));
  }
  if ((info.st_mode & kOthersMayWrite) != 0) {
    return FileError(EPERM, "use the cache folder", path,
                     "others may write to it; make it yours alone with chmod go-w");
  }
  return folder;
}

// Opens and locks `name`; returns no descriptor if `wait` is false and another process has the
// lock. If the file was deleted while this process waited, the new one is locked instead.
absl::StatusOr<UniqueFd> LockEntry(const Folder& folder, const std::string& name, bool wait) {
  while (true) {
    UniqueFd fd(openat(folder.fd.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                       S_IRUSR | S_IWUSR));
    if (fd.get() < 0) return FileError(errno, "write", folder.PathOf(name), kCacheAdvice);
    if (!wait && flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
    if (wait) {
      if (absl::Status status = LockFile(fd, folder.PathOf(name)); !status.ok()) return status;
    }
    struct stat opened, named;
    if (fstat(fd.get(), &opened) == 0 &&
        fstatat(folder.fd.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        opened.st_ino == named.st_ino) {
      return fd;
    }
  }
}

// Replaces the contents of the file with `bytes`. Returns 0 or an errno.
int Overwrite(const UniqueFd& fd, absl::string_view bytes) {
  if (ftruncate(fd.get(), 0) != 0) return errno;
  for (off_t offset = 0; !bytes.empty();) {
    const ssize_t count = pwrite(fd.get(), bytes.data(), bytes.size(), offset);
    if (count < 0 && errno != EINTR) return errno;
    if (count < 0) continue;
    offset += count;
    bytes.remove_prefix(count);
  }
  return fsync(fd.get()) == 0 ? 0 : errno;
}

// The parts of the name of an entry's file.
struct CacheName {
  std::string name;
  std::string key;
  bool is_temporary = false;
};

// KEY.EXTENSION or .KEY.EXTENSION.tmp, where a key is the hex digits of a digest. Files with other
// names are left alone.
std::optional<CacheName> ParseName(const std::string& name) {
  absl::string_view rest = name;
  const bool is_temporary = absl::ConsumePrefix(&rest, ".");
  if (is_temporary && !absl::ConsumeSuffix(&rest, ".tmp")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('.', 1));
  const bool is_key = parts.first.size() == kKeyLength && absl::c_all_of(parts.first, [](char c) {
                        return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                      });
  const bool is_extension = !parts.second.empty() && absl::c_all_of(parts.second, [](char c) {
    return absl::ascii_isalnum(c);
  });
  if (!is_key || !is_extension) return std::nullopt;
  return CacheName{name, std::string(parts.first), is_temporary};
}

absl::Time ModifiedAt(const UniqueFd& fd) {
  struct stat info;
  return fstat(fd.get(), &info) == 0 ? absl::TimeFromTimespec(info.st_mtim)
                                     : absl::InfiniteFuture();
}

}  // namespace

absl::StatusOr<Folder> OpenCacheFolder(const std::string& path) {
  if (!path.empty()) {
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(path, error).string();
    return OpenPrivateFolder(error ? path : absolute, /*followed=*/true);
  }
  absl::StatusOr<Folder> folder = absl::InternalError("no folder tried");
  // A batch system may pass variables to nodes that lack the folders; then the next one is tried.
  for (const char* parent : {const_cast<const char*>(getenv("SLURM_TMPDIR")),
                             const_cast<const char*>(getenv("TMPDIR")), "/tmp"}) {
    if (parent == nullptr || parent[0] != '/') continue;
    folder = OpenPrivateFolder(absl::StrCat(parent, "/spillway-", geteuid()), /*followed=*/false);
    if (folder.ok()) return folder;
  }
  return folder;
}

void PruneCache(const Folder& folder, absl::Time time) {
  std::map<std::string, std::vector<CacheName>> entries;  // By key.
  std::error_code error;
  for (auto file = std::filesystem::directory_iterator(folder.path, error);
       !error && file != std::filesystem::directory_iterator(); file.increment(error)) {
    if (std::optional<CacheName> name = ParseName(file->path().filename().string())) {
      entries[name->key].push_back(*std::move(name));
    }
  }
  for (const auto& [key, files] : entries) {
    const std::string entry = key + kEntrySuffix;
    const bool has_temporary =
        absl::c_any_of(files, [](const CacheName& file) { return file.is_temporary; });
    struct stat info;
    const bool is_old = fstatat(folder.fd.get(), entry.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                        absl::TimeFromTimespec(info.st_mtim) < time;
    if (!has_temporary && !is_old) continue;
    const absl::StatusOr<UniqueFd> lock = LockEntry(folder, entry, /*wait=*/false);
    if (!lock.ok() || lock->get() < 0) continue;
    // The entry may have been used between the two checks.
    const bool is_unused = is_old && ModifiedAt(*lock) < time;
    for (const CacheName& file : files) {
      if ((is_unused || file.is_temporary) && file.name != entry) {
        unlinkat(folder.fd.get(), file.name.c_str(), 0);
      }
    }
    if (is_unused) unlinkat(folder.fd.get(), entry.c_str(), 0);
  }
}

absl::StatusOr<CacheEntry> CacheEntry::Lock(const Folder& folder, const std::string& key) {
  // Read before the wait: if the text has changed afterwards, it was written meanwhile. This does
  // not depend on synchronized clocks, and a partial text also differs.
  const absl::StatusOr<std::string> before =
      ReadWholeFile(folder, key + kEntrySuffix, kMaxEntryBytes);
  absl::StatusOr<UniqueFd> fd = LockEntry(folder, key + kEntrySuffix, /*wait=*/true);
  if (!fd.ok()) return fd.status();
  return CacheEntry(folder, key, *std::move(fd), before.value_or(""));
}

// In place of the files there is a line that is unique to this failure.
void CacheEntry::StoreFailure(const std::string& note) const {
  const std::string body =
      absl::StrCat(kFailed, " ", absl::ToUnixNanos(absl::Now()), " ", getpid(), "\n\n", note);
  Overwrite(fd_, absl::StrCat(DigestOf(body), "\n", body));
}

std::optional<std::string> CacheEntry::FailureWhileWaiting() const {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(*folder_, key_ + kEntrySuffix, kMaxEntryBytes);
  if (!text.ok() || *text == before_) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(*text, absl::MaxSplits('\n', 1));
  const std::pair<absl::string_view, absl::string_view> body =
      absl::StrSplit(parts.second, absl::MaxSplits("\n\n", 1));
  if (parts.first != DigestOf(parts.second) || !absl::StartsWith(body.first, kFailed)) {
    return std::nullopt;
  }
  return std::string(body.second);
}

// An entry consists of the digest of the rest; the digest and suffix of each file; an empty line;
// and the note.
std::optional<CacheEntry::Contents> CacheEntry::Load() const {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(*folder_, key_ + kEntrySuffix, kMaxEntryBytes);
  if (!text.ok()) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(*text, absl::MaxSplits('\n', 1));
  if (parts.first != DigestOf(parts.second)) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> body =
      absl::StrSplit(parts.second, absl::MaxSplits("\n\n", 1));
  if (absl::StartsWith(body.first, kFailed)) return std::nullopt;
  Contents contents;
  contents.note = std::string(body.second);
  for (const absl::string_view line : absl::StrSplit(body.first, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, std::string> file =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const absl::StatusOr<std::string> bytes =
        ReadWholeFile(*folder_, key_ + file.second, kMaxFileBytes);
    if (!bytes.ok() || DigestOf(*bytes) != file.first) return std::nullopt;
    contents.suffixes.push_back(file.second);
  }
  futimens(fd_.get(), nullptr);
  return contents;
}

absl::Status CacheEntry::Store(const std::vector<CacheFile>& files, const std::string& note) const {
  const auto overwrite = [this](absl::string_view bytes) {
    const int error = Overwrite(fd_, bytes);
    if (error == 0) return absl::OkStatus();
    return FileError(error, "write", PathOf(kEntrySuffix), "no part of it was kept");
  };
  if (absl::Status status = overwrite(""); !status.ok()) return status;
  std::string body;
  for (const CacheFile& file : files) {
    if (absl::Status status =
            WriteWholeFile(*folder_, key_ + file.suffix, file.bytes, kCacheFileMode);
        !status.ok()) {
      // The disk may be full; a truncated entry is useless.
      for (const CacheFile& stored : files) {
        unlinkat(folder_->fd.get(), (key_ + stored.suffix).c_str(), 0);
      }
      return status;
    }
    absl::StrAppend(&body, DigestOf(file.bytes), " ", file.suffix, "\n");
  }
  absl::StrAppend(&body, "\n", note);
  return overwrite(absl::StrCat(DigestOf(body), "\n", body));
}

}  // namespace spillway::cli
