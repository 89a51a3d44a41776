#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_lib/cli/base/own_version.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/text_table.h"
#include "client_lib/cli/print/value_name.h"
#include "google/protobuf/descriptor.h"
#include "rewrite_core/base/names.h"

namespace spillway::cli {
namespace {

struct CapabilitiesFlags {
  explicit CapabilitiesFlags(CLI::App* command)
      : connection(command, ConnectionFlags::Kind::kCall) {}

  bool json = false;
  ConnectionFlags connection;
};

// One row per limit that is set, by reflection: a new limit appears without a change here.
void AddLimits(const v1::Limits& limits, std::vector<std::vector<std::string>>* rows) {
  const google::protobuf::Reflection* reflection = limits.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(limits, &fields);
  for (const auto* field : fields) {
    const int64_t value = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT32
                              ? reflection->GetInt32(limits, field)
                              : reflection->GetInt64(limits, field);
    std::string text = absl::StrCat(value);
    if (absl::EndsWith(field->name(), "_bytes"))
      absl::StrAppend(&text, " (", FormatBytes(value), ")");
    rows->push_back({field->name(), text});
  }
}

std::string PresetTable(const v1::GetCapabilitiesResponse& response) {
  if (response.hardware_presets().empty()) return "";  // An older server.
  std::vector<std::vector<std::string>> rows = {
      {"machine", "GPU memory", "TFLOP/s", "GB/s", "GB/s out", "GB/s in", "launch"}};
  for (const v1::HardwareReport& machine : response.hardware_presets()) {
    const v1::Hardware& preset = machine.hardware();
    rows.push_back({preset.preset(), FormatBytes(preset.gpu_memory_bytes()),
                    absl::StrFormat("%.1f", preset.peak_flops() / 1e12),
                    absl::StrFormat("%.0f", preset.mem_bytes_per_s() / 1e9),
                    absl::StrFormat("%.1f", preset.d2h_bytes_per_s() / 1e9),
                    absl::StrFormat("%.1f", preset.h2d_bytes_per_s() / 1e9),
                    absl::StrFormat("%.0f us", preset.launch_s() * 1e6)});
  }
  return absl::StrCat("\n", FormatTable(rows));
}

std::string FormatCapabilities(const v1::GetCapabilitiesResponse& response, bool of_server) {
  std::vector<std::vector<std::string>> rows = {
      {"version", of_server
                      ? absl::StrCat(response.version(), " (this program: ", OwnVersion(), ")")
                      : response.version()},
      {"strategies", absl::StrJoin(response.strategies(), ", ",
                                   [](std::string* out, int strategy) {
                                     const auto value = static_cast<v1::Strategy>(strategy);
                                     absl::StrAppend(
                                         out, NameOrNumber(core::StrategyName(value), value));
                                   })},
  };
  AddLimits(response.limits(), &rows);
  return absl::StrCat(FormatFacts(rows), PresetTable(response));
}

}  // namespace

void AddCapabilitiesCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "capabilities",
      "Prints the version, strategies, limits and machine presets of a server, or of this "
      "program.");
  auto flags = std::make_shared<CapabilitiesFlags>(command);
  command
      ->add_flag("--json", flags->json,
                 "Prints JSON: GetCapabilitiesResponse in rewrite_service.proto.")
      ->group("What to write");
  command->footer("Example:\n  spillway capabilities --server host:7070 --json | jq .limits");
  command->final_callback([flags, session] {
    session->run = [flags, session]() -> absl::StatusOr<ExitCode> {
      absl::StatusOr<CallOptions> call = flags->connection.MakeCall(*session);
      if (!call.ok()) return call.status();
      const auto response = flags->connection.Connect().GetCapabilities(*call);
      if (!response.ok()) return response.status();
      std::cout << (flags->json ? ToJsonWithoutZeros(*response)
                                : FormatCapabilities(*response, flags->connection.HasServer()));
      return ExitCode::kDone;
    };
  });
}

}  // namespace spillway::cli
