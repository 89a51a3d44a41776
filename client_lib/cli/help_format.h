// How --help looks.
#ifndef SPILLWAY_CLIENT_LIB_CLI_HELP_FORMAT_H_
#define SPILLWAY_CLIENT_LIB_CLI_HELP_FORMAT_H_

#include <string>

#include "CLI/App.hpp"
#include "CLI/Formatter.hpp"

namespace spillway::cli {

// CLI11's own, with texts broken to fit a terminal of 80 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace spillway::cli

#endif  // SPILLWAY_CLIENT_LIB_CLI_HELP_FORMAT_H_
