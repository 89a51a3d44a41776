// The flags that set options: one for each field of v1::RewriteOptions, v1::Step, v1::Hardware and
// of the strategies' messages, except those that files and other flags determine.
//
// A flag's type and values come from the field's descriptor; its name, help and default from the
// field's comment, by option_help.inc, which client_lib/python/generate.py writes at every build.
// So a new field has its flag; a new strategy needs its name in option_table.cc, which also has
// texts of fields for the command line only.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace spillway::cli {

// One flag.
struct OptionRow {
  const google::protobuf::FieldDescriptor* field;
  std::string flag;   // `--optimizer-scopes`
  std::string help;   // With the default.
  std::string needs;  // The flag that this one requires, or empty.
};

// A strategy: the name of its field in the oneof `strategy`, and its parameters.
struct StrategyTable {
  std::string name;
  std::string help;  // Its description, without a full stop.
  std::vector<OptionRow> rows;
};

// Flags common to all strategies: fields of v1::RewriteOptions.
const std::vector<OptionRow>& CommonOptions();

// Flags for fields of v1::Step, and their group in --help.
inline constexpr char kStepGroup[] = "The step";
const std::vector<OptionRow>& StepOptions();

// Flags for fields of v1::Hardware, and their group in --help.
inline constexpr char kHardwareGroup[] = "Machine";
const std::vector<OptionRow>& HardwareOptions();

// The strategies of the command `rewrite`, strongest first: the first is the default.
const std::vector<StrategyTable>& Strategies();

// Returns the flag of a field of another message, such as SimulateOptions.execution. REQUIRES: the
// field is in option_help.inc.
OptionRow RowOf(const google::protobuf::Descriptor* message, const std::string& field);

// All flags that stand for a field, by its name.
const std::map<std::string, std::string, std::less<>>& FlagsByField();

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_
