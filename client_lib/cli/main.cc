// The program `spillway`: see app.h.
#include "client_lib/cli/app.h"
#include "client_lib/cli/interrupt.h"

int main(int argc, char** argv) {
  spillway::CancellationToken cancellation;
  spillway::cli::InterruptWatcher watcher(cancellation);
  return spillway::cli::RunCommandLine(argc, argv, cancellation);
}
