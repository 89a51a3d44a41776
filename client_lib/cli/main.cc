// The program `spillway`: see app.h.
#include "client_lib/cli/app.h"
#include "client_lib/cli/commands/run_command.h"
#include "client_lib/cli/interrupt.h"
#include "rewrite_core/base/standard_streams.h"

int main(int argc, char** argv) {
  spillway::CancellationToken cancellation;
  // `run` replaces this process with another program, which gets all signals from the start.
  if (spillway::cli::IsRunCommand(argc, argv)) {
    return spillway::cli::RunCommandLine(argc, argv, cancellation);
  }
  spillway::cli::InterruptWatcher watcher(cancellation);
  return spillway::cli::RunCommandLine(argc, argv, cancellation);
}
