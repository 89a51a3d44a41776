// The program `spillway`: see app.h.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "client_lib/cli/app.h"
#include "client_lib/cli/base/exit_code.h"
#include "client_lib/cli/base/out_of_memory.h"
#include "client_lib/cli/commands/run_command.h"
#include "client_lib/cli/interrupt.h"
#include "rewrite_core/base/standard_streams.h"

namespace {

// Memory that is not there where nobody catches it: in another thread, or for a thread.
[[noreturn]] void EndWithoutMemory() {
  try {
    if (std::current_exception() != nullptr) throw;
    std::abort();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  } catch (const std::system_error&) {
  } catch (...) {
    std::abort();
  }
  for (const char* text : {"spillway: ", spillway::cli::kOutOfMemory, " [LIMIT_EXCEEDED]\n"}) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  }
  _exit(static_cast<int>(spillway::cli::ExitCode::kBadGraph));
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(EndWithoutMemory);
  spillway::CancellationToken cancellation;
  // `run` replaces this process with another program, which gets all signals from the start.
  if (spillway::cli::IsRunCommand(argc, argv)) {
    return spillway::cli::RunCommandLine(argc, argv, cancellation);
  }
  spillway::cli::InterruptWatcher watcher(cancellation);
  return spillway::cli::RunCommandLine(argc, argv, cancellation);
}
