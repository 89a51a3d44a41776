// The program `spillway`: see app.h.
#include "client_lib/cli/app.h"
#include "client_lib/cli/commands/run_command.h"
#include "client_lib/cli/interrupt.h"

int main(int argc, char** argv) {
  spillway::CancellationToken cancellation;
  // `run` becomes another program: signals are that program's, from the first moment.
  if (spillway::cli::IsRunCommand(argc, argv)) {
    return spillway::cli::RunCommandLine(argc, argv, cancellation);
  }
  spillway::cli::InterruptWatcher watcher(cancellation);
  return spillway::cli::RunCommandLine(argc, argv, cancellation);
}
