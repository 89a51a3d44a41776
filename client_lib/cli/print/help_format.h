// How --help looks.
#ifndef SPILLWAY_CLIENT_LIB_CLI_PRINT_HELP_FORMAT_H_
#define SPILLWAY_CLIENT_LIB_CLI_PRINT_HELP_FORMAT_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Formatter.hpp"

namespace spillway::cli {

// What an option's value is called, `N` or `HOST:PORT`: without the words that validators
// (IsMember, Range) put behind it.
std::string TypeNameOf(const CLI::Option& option);

// CLI11's own, with texts broken to fit the line (line_width.h; without one said, 80 columns). Of a
// command with many flags, --help shows those that most need, one sentence each; --help-all shows
// everything, and so do commands with few flags.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  // Of the help that is being made: CLI11 asks for its parts one by one, on one thread.
  mutable bool short_ = false;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_PRINT_HELP_FORMAT_H_
