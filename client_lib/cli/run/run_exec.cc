#include "client_lib/cli/run/run_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

// Where execvp searches without a PATH (glibc).
constexpr char kDefaultPath[] = "/bin:/usr/bin";

int ProgramError(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

}  // namespace

IgnoredSigpipe::IgnoredSigpipe() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &inherited_);
}

IgnoredSigpipe::~IgnoredSigpipe() { sigaction(SIGPIPE, &inherited_, nullptr); }

int FindProgram(const std::string& name) {
  if (name.empty()) return ENOENT;
  if (name.find('/') != name.npos) return ProgramError(name);
  const char* path = getenv("PATH");
  int result = ENOENT;
  for (const absl::string_view folder :
       absl::StrSplit(path != nullptr ? path : kDefaultPath, ':')) {
    const std::string file = folder.empty() ? name : absl::StrCat(folder, "/", name);
    const int error = ProgramError(file);
    if (error == 0) return 0;
    // An inaccessible folder of PATH says nothing about the program.
    if (error == EACCES && access(file.c_str(), F_OK) == 0) result = EACCES;
  }
  return result;
}

int ExecCommand(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return errno;
}

ExitCode ReportNotRun(const std::string& name, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  std::cerr << "spillway: cannot run " << core::Quoted(name) << ": " << strerror(error) << "; "
            << (missing ? "give a command that is in PATH, or its path"
                        : "give a program that you may execute")
            << " [COMMAND]\n";
  return missing ? ExitCode::kCommandNotFound : ExitCode::kCommandNotExecutable;
}

}  // namespace spillway::cli
