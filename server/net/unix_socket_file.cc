#include "server/net/unix_socket_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace spillway::server {

UnixSocketFile::UnixSocketFile(std::string path) : path_(std::move(path)) {
  struct stat info = {};
  if (lstat(path_.c_str(), &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

UnixSocketFile::~UnixSocketFile() {
  struct stat info = {};
  if (lstat(path_.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && info.st_dev == device_ &&
      info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

PrivateFiles::PrivateFiles() : before_(umask(S_IXUSR | S_IRWXG | S_IRWXO)) {}
PrivateFiles::~PrivateFiles() { umask(before_); }

}  // namespace spillway::server
