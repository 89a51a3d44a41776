#include "client_lib/cli/flags/color_flag.h"

#include <unistd.h>

#include <cstdlib>

#include "CLI/Validators.hpp"
#include "client_lib/cli/flags/flag_names.h"
#include "client_lib/cli/print/line_width.h"

namespace spillway::cli {
namespace {

// The value of --color. Set while the command line is parsed, before other threads can print.
std::string& ColorMode() {
  static std::string& mode = *new std::string("auto");
  return mode;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void AddColorFlag(CLI::App* command) {
  command
      ->add_option_function<std::string>(
          "--color", [](const std::string& mode) { ColorMode() = mode; },
          "When to use color: auto, always or never. auto: on a terminal, unless NO_COLOR is set. "
          "[default: auto]")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->group("What to write");
}

text::Style StyleOf(int fd) {
  bool is_on = ColorMode() == "always";
  if (ColorMode() == "auto") {
    const std::string terminal = Variable("TERM");
    is_on =
        isatty(fd) == 1 && Variable("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb";
  }
  using text::Style;
  return Style(is_on ? Style::Color::kOn : Style::Color::kOff, LineWidth(text::kLineWidth),
               [](absl::string_view sentence) { return InFlags(sentence); });
}

}  // namespace spillway::cli
