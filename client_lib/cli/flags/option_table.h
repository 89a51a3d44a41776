// The flags of `spillway rewrite` that stand for fields of v1::RewriteOptions, as a table.
//
// A flag is a row: the field's name with dashes, its type and its values come from the proto's
// descriptor, the words from here. A new parameter is a new row; a new strategy a new table and a
// line in Strategies(). A test compares names and defaults with the proto.
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
  // What it does, its unit and its range.
  absl::string_view help;
  // As the proto's comment has it after "Default: "; empty if that names none.
  absl::string_view default_text;
  // The flag's name where it is not the field's; empty otherwise.
  absl::string_view flag;
  // The field of the same table whose flag this one is of no use without; empty: none.
  absl::string_view needs = "";
};

// A strategy: the name of its field in the oneof `strategy`, and its parameters.
struct StrategyTable {
  absl::string_view name;
  absl::Span<const OptionRow> rows;
};

// Flags that every strategy has: fields of v1::RewriteOptions.
absl::Span<const OptionRow> CommonOptions();

// Flags that stand for fields of v1::Step, and their group in --help.
inline constexpr char kStepGroup[] = "The step";
absl::Span<const OptionRow> StepOptions();

// Flags that stand for fields of v1::Hardware, and their group in --help.
inline constexpr char kHardwareGroup[] = "Machine";
absl::Span<const OptionRow> HardwareOptions();

// The strategies of the command `rewrite`, strongest first: the first is the default.
absl::Span<const StrategyTable> Strategies();

// `--optimizer-scopes` for the row of `optimizer_scopes`.
std::string FlagOf(const OptionRow& row);

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_FLAGS_OPTION_TABLE_H_
