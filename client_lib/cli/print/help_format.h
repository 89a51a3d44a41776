// The format of --help.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_HELP_FORMAT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_HELP_FORMAT_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Formatter.hpp"

namespace spillway::cli {

// Returns the name of an option's value, `N` or `HOST:PORT`, without the text that validators
// (IsMember, Range) append.
std::string TypeNameOf(const CLI::Option& option);

// CLI11's formatter, with texts wrapped to the line width (line_width.h; 80 columns by default).
// For a command with many flags, --help shows the most common ones, with a sentence for each and
// for each of its named values; --help-all shows everything, as does --help for commands with few
// flags.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  // Of the help being made: CLI11 requests its parts one by one, on one thread.
  mutable bool short_ = false;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_HELP_FORMAT_H_
