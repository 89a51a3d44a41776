#include "client_lib/cli/print/help_format.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client_lib/cli/print/line_width.h"
#include "client_lib/text/text_table.h"

namespace spillway::cli {
namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kNameWidth = 28;
// Commands with at most this many flags show all of them.
constexpr size_t kFewFlags = 20;
// The most common flags, shown for commands with more. All commands spell them the same way.
constexpr char kMostUsed[] =
    "help help-all output report json save-plan quiet strategy feed batch-size targets "
    "hardware objective recompute graph fail-open gpu-memory-bytes allocator-reserve server "
    "fail-closed cache-dir sizes swapping no-budget memory top require-fit multiple-of "
    "theme throughput save-profile";

size_t Width() { return LineWidth(kUsualWidth); }
// The width beside the names; never zero, however narrow the line.
size_t TextWidth() { return std::max<size_t>(Width(), kNameWidth + 20) - kNameWidth; }

// Only the first sentence, since the list of commands has no room for more.
std::string FirstSentence(const std::string& text) {
  const size_t end = text.find_first_of(".:");
  return end == std::string::npos ? text : text.substr(0, end) + ".";
}

// The first sentences, as many as it takes to have `enough` characters.
std::string FirstSentences(const std::string& text, size_t enough) {
  size_t stop = text.find(". ");
  while (stop != std::string::npos &&
         (stop < enough || absl::EndsWith(text.substr(0, stop), "e.g"))) {
    stop = text.find(". ", stop + 1);
  }
  return stop == std::string::npos ? text : text.substr(0, stop + 1);
}

// The first sentences, as many as it takes to say something, the first one on each value ("budget:
// ...") if `type` names them ("budget|level"), and the default up to a comma, if that is short
// and more than "none" or "not set".
std::string InShort(const std::string& text, const std::string& type) {
  constexpr size_t kShortDefault = 29;  // fastest_that_fits
  constexpr size_t kEnough = 40;        // "On any failure." is not.
  const size_t default_at = text.rfind(" [default: ");
  const std::string said = text.substr(0, default_at);
  std::vector<size_t> starts = {0};
  for (absl::string_view value : absl::StrSplit(type, '|')) {
    const size_t at = said.find(absl::StrCat(". ", value, ": "), starts.back());
    if (at != std::string::npos) starts.push_back(at + 2);
  }
  std::string first;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] - 1 : said.size();
    absl::StrAppend(&first, i == 0 ? "" : " ",
                    FirstSentences(said.substr(starts[i], end - starts[i]), i == 0 ? kEnough : 0));
  }
  // A flag that is the default.
  constexpr absl::string_view kIsDefault = " [default]";
  if (absl::EndsWith(text, kIsDefault)) return absl::StrCat(first, kIsDefault);
  if (default_at == std::string::npos) return first;
  std::string value = text.substr(default_at);
  if (const size_t comma = value.find(','); comma != std::string::npos) {
    value = absl::StrCat(value.substr(0, comma), "]");
  }
  if (value.size() <= kShortDefault && !absl::StartsWith(value, " [default: no")) first += value;
  return first;
}

bool IsMostUsed(const CLI::Option* option) {
  for (absl::string_view name : absl::StrSplit(kMostUsed, ' ')) {
    if (option->check_lname(std::string(name))) return true;
  }
  return option->get_positional() || option->get_required();
}

size_t FlagCount(const CLI::App* app) {
  return app->get_options([](const CLI::Option* option) { return option->nonpositional(); }).size();
}

}  // namespace

std::string TypeNameOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, std::min(type.find(":{"), type.find(":INT in")));
}

HelpFormatter::HelpFormatter() { column_width(kNameWidth); }

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  short_ = mode == CLI::AppFormatMode::Normal && FlagCount(app) > kFewFlags;
  // --help-all covers the flags of one command; for the program, it would list those of every
  // command.
  std::string text = CLI::Formatter::make_help(app, std::move(name), CLI::AppFormatMode::Normal);
  while (absl::StrReplaceAll({{"\n\n\n", "\n\n"}}, &text) > 0) {
  }
  return text;
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  if (short_) {
    options.erase(std::remove_if(options.begin(), options.end(),
                                 [](const CLI::Option* option) { return !IsMostUsed(option); }),
                  options.end());
  }
  if (options.empty()) return "";
  return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string footer = CLI::Formatter::make_footer(app);
  if (!short_) return footer;
  const size_t examples = footer.find("Example");
  return absl::StrCat(examples == std::string::npos ? footer : footer.substr(examples),
                      "\nspillway ", app->get_name(), " --help-all shows all ", FlagCount(app),
                      " flags.\n");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = CLI::Formatter::make_usage(app, std::move(name));
  if (app->get_name() != "run") return usage;
  absl::StripTrailingAsciiWhitespace(&usage);
  return absl::StrCat(usage, " -- COMMAND [ARGUMENT...]\n");
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return absl::StrCat(text::Wrap(app->get_description(), Width()), "\n");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string type = TypeNameOf(*option);
  return absl::StrCat(type.empty() ? "" : " ", type);
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string text = option->get_description();
  return text::Wrap(absl::StrCat(short_ ? InShort(text, TypeNameOf(*option)) : text,
                                 option->get_required() ? " [required]" : ""),
                    TextWidth());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_name(),
                           text::Wrap(FirstSentence(command->get_description()), TextWidth()),
                           kNameWidth);
  return out.str();
}

}  // namespace spillway::cli
