// The file of a Unix socket that this server listens on, removed when the server stops if it is
// still the same file. Not thread-safe.
#ifndef SPILLWAY_SERVER_NET_UNIX_SOCKET_FILE_H_
#define SPILLWAY_SERVER_NET_UNIX_SOCKET_FILE_H_

#include <sys/types.h>

#include <string>

namespace spillway::server {

class UnixSocketFile {
 public:
  // Records which file is at `path` now.
  explicit UnixSocketFile(std::string path);
  UnixSocketFile(const UnixSocketFile&) = delete;
  UnixSocketFile& operator=(const UnixSocketFile&) = delete;
  ~UnixSocketFile();

 private:
  const std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// While it lives, files that this process creates are accessible to its user only (mode 0600).
// Affects the whole process, so no thread may create files for others meanwhile.
class PrivateFiles {
 public:
  PrivateFiles();
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;
  ~PrivateFiles();

 private:
  const mode_t before_;
};

}  // namespace spillway::server

#endif  // SPILLWAY_SERVER_NET_UNIX_SOCKET_FILE_H_
