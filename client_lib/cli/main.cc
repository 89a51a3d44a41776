// The program `spillway`: see app.h.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "client_lib/cli/app.h"
#include "client_lib/cli/base/exit_code.h"
#include "client_lib/cli/base/out_of_memory.h"
#include "client_lib/cli/commands/run_command.h"
#include "client_lib/cli/interrupt.h"
#include "rewrite_core/base/standard_streams.h"

// A failed allocation that no code catches: for a new thread, or in one.
[[noreturn]] static void EndWithoutMemory() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spillway: %s (%s) [LIMIT_EXCEEDED]\n", spillway::cli::kOutOfMemory,
                 error.what());
    std::_Exit(static_cast<int>(spillway::cli::ExitCode::kBadGraph));
  }
  std::abort();
}

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
