#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client_lib/cli/base/own_version.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/flags/color_flag.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/internal/host_rate.h"
#include "client_lib/internal/program_output.h"
#include "client_lib/internal/this_machine.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/byte_text.h"

namespace spillway::cli {
namespace {

using internal::Deadline;
using internal::kNvidiaSmiTime;
using Rows = std::vector<std::vector<std::string>>;

// For a command on a machine that is busy: Python takes a second to start there.
constexpr absl::Duration kPythonTime = absl::Seconds(10);

// Facts from another process, without loading TensorFlow, or the library into this one: a line
// each, `-` for a missing one.
constexpr char kAskPython[] = R"(
import ctypes, sys
from importlib import metadata

def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return "-"

try:
    ctypes.CDLL("libspillway.so.0")
    library = "found"
except OSError:
    library = "-"
print(sys.executable)
print(version("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly"))
print(version("spillway-lms"))
print(library)
)";

struct DoctorFlags {
  explicit DoctorFlags(CLI::App* command) : connection(command, ConnectionFlags::Kind::kCall) {}

  ConnectionFlags connection;
};

void AddMachine(Rows* rows) {
  const absl::StatusOr<internal::ThisMachine>& machine = internal::MachineOfProcess();
  const bool knows_memory = machine.ok() && machine->usable_bytes > 0;
  rows->push_back({"GPU", machine.ok() ? machine->gpus
                                       : absl::StrCat("not known: ", machine.status().message())});
  rows->push_back({"memory", knows_memory ? internal::MemoryText(*machine)
                                          : "not known: give --gpu-memory-bytes"});
  if (machine.ok()) {
    rows->push_back({"host memory", machine->host_bytes > 0
                                        ? absl::StrCat(core::BytesText(machine->host_bytes),
                                                       ", half of it for swaps")
                                        : "not known: give --host-memory-bytes"});
    const std::string driver =
        internal::OutputOf({"nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"},
                           Deadline(kNvidiaSmiTime))
            .value_or("");
    const std::vector<std::string> lines = absl::StrSplit(driver, '\n');
    rows->push_back({"driver", lines[0].empty() ? "not reported by nvidia-smi" : lines[0]});
  }
  if (!machine.ok() || machine->preset.empty()) {
    const std::string why = machine.ok() ? absl::StrCat(", as ", machine->why_none) : "";
    rows->push_back({"machine", absl::StrCat(internal::AssumedPreset(), " is assumed", why,
                                             ": name the one that trains with --hardware "
                                             "(spillway capabilities lists them)")});
  } else {
    rows->push_back({"machine", absl::StrCat(machine->preset,
                                             machine->estimated
                                                 ? ", the most similar preset: an estimate; give "
                                                   "the card's own figures by --hardware FILE.json"
                                                 : "")});
  }
}

// Larger than caches; a second of one slow core.
constexpr int64_t kRateBytes = int64_t{256} << 20;

void AddHostRate(Rows* rows) {
  const double rate = internal::MeasureHostRate(kRateBytes);
  rows->push_back({"host rate", rate == 0 ? std::string("not measured: not enough memory")
                                          : absl::StrFormat("%.3g GB/s; if it trains here, give "
                                                            "--host-mem-bytes-per-s %.2ge9",
                                                            rate / 1e9, rate / 1e9)});
}

void AddPython(Rows* rows) {
  const std::string said =
      internal::OutputOf({"python3", "-c", kAskPython}, Deadline(kPythonTime)).value_or("");
  const std::vector<std::string> lines = absl::StrSplit(said, '\n');
  if (lines.size() < 4) {
    rows->push_back({"python3", "none in PATH answers; Python packages are not checked"});
    return;
  }
  rows->push_back({"python3", lines[0]});
  rows->push_back(
      {"TensorFlow", lines[1] != "-" ? lines[1] : "not in this Python; only a trainer needs it"});
  rows->push_back({"spillway-lms", lines[2] != "-"
                                       ? lines[2]
                                       : "not in this Python; pip install its wheel to rewrite "
                                         "inside a trainer (deploy/portable makes it)"});
  rows->push_back({"library", lines[3] != "-"
                                  ? "libspillway.so.0, found by the loader"
                                  : "the loader finds no libspillway.so.0, which trainers in C and "
                                    "C++ need: after an install, run ldconfig as root"});
}

absl::StatusOr<ExitCode> Run(const DoctorFlags& flags, const Session& session) {
  absl::StatusOr<CallOptions> call = flags.connection.MakeCall(session);
  if (!call.ok()) return call.status();
  Rows rows = {{"spillway", OwnVersion()}};
  AddMachine(&rows);
  AddHostRate(&rows);
  AddPython(&rows);
  ExitCode code = ExitCode::kDone;
  if (!flags.connection.HasServer()) {
    rows.push_back({"server", "not asked: give --server HOST:PORT"});
  } else {
    const auto status = flags.connection.Connect().CheckHealth("", *call);
    if (!status.ok() || *status != ServingStatus::kServing) code = ExitCode::kNotServing;
    rows.push_back({"server", status.ok() ? std::string(ServingStatusName(*status))
                                          : std::string(status.status().message())});
  }
  std::cout << text::FormatFacts(rows, StyleOf(STDOUT_FILENO));
  return code;
}

}  // namespace

void AddDoctorCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "doctor",
      "Prints what Spillway finds on this machine, and how to get what is missing: the "
      "GPUs, the machine that is planned for, the rate of the host's memory, Python's TensorFlow, "
      "the library, and with --server "
      "a "
      "server. The exit code is 1 if the server does not serve.");
  auto flags = std::make_shared<DoctorFlags>(command);
  command->footer("Example:\n  spillway doctor --server host:7070");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
