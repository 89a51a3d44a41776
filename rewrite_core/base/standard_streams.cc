#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace spillway::core {

// No functions of libc that a sanitizer replaces, because it is not initialized yet.
void OpenStandardStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (syscall(SYS_fcntl, fd, F_GETFD) >= 0) continue;
    // The lowest free number, which is this one. Without /dev/null there is nothing to be done.
    (void)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC);
  }
}

}  // namespace spillway::core
