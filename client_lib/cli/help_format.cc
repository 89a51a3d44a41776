#include "client_lib/cli/help_format.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/text_table.h"

namespace spillway::cli {
namespace {

constexpr size_t kLineWidth = 80;
constexpr size_t kNameWidth = 28;

// The first sentence: the list of commands has no room for more.
std::string FirstSentence(const std::string& text) {
  const size_t end = text.find_first_of(".:");
  return end == std::string::npos ? text : text.substr(0, end) + ".";
}

}  // namespace

HelpFormatter::HelpFormatter() { column_width(kNameWidth); }

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return absl::StrCat(Wrap(app->get_description(), kLineWidth), "\n");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string type = option->get_type_name();
  return absl::StrCat(type.empty() ? "" : " ", type);
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return Wrap(absl::StrCat(option->get_description(), option->get_required() ? " [required]" : ""),
              kLineWidth - kNameWidth);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_name(),
                           Wrap(FirstSentence(command->get_description()), kLineWidth - kNameWidth),
                           kNameWidth);
  return out.str();
}

}  // namespace spillway::cli
