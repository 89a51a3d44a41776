// The table of the flags of `spillway rewrite` that set fields of v1::RewriteOptions.
//
// A flag is a row. Its name (the field's, with dashes), type and values come from the proto's
// descriptor, its help text from here. A new parameter is a new row; a new strategy is a new table
// and a line in Strategies(). A test compares names and defaults with the proto.
#ifndef SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_
#define SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spillway::cli {

// One flag. All of it is static text.
struct OptionRow {
  // The field's name in the proto.
  absl::string_view field;
  // Its effect, unit and range.
  absl::string_view help;
  // The default, as after "Default: " in the proto's comment; empty if there is none.
  absl::string_view default_text;
  // The flag's name if it differs from the field's; empty otherwise.
  absl::string_view flag;
  // The field of the same table whose flag this one requires; empty: none.
  absl::string_view needs = "";
};

// A strategy: the name of its field in the oneof `strategy`, and its parameters.
struct StrategyTable {
  absl::string_view name;
  absl::Span<const OptionRow> rows;
};

// Flags common to all strategies: fields of v1::RewriteOptions.
absl::Span<const OptionRow> CommonOptions();

// Flags for fields of v1::Step, and their group in --help.
inline constexpr char kStepGroup[] = "The step";
absl::Span<const OptionRow> StepOptions();

// Flags for fields of v1::Hardware, and their group in --help.
inline constexpr char kHardwareGroup[] = "Machine";
absl::Span<const OptionRow> HardwareOptions();

// The strategies of the command `rewrite`, strongest first: the first is the default.
absl::Span<const StrategyTable> Strategies();

// Returns `--optimizer-scopes` for the row of `optimizer_scopes`.
std::string FlagOf(const OptionRow& row);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_
