#include "client_lib/cli/flags/field_flag.h"

#include "absl/strings/str_cat.h"
#include "client_lib/cli/flags/option_value.h"

namespace spillway::cli {

using google::protobuf::FieldDescriptor;

CLI::Option* AddFieldFlag(CLI::App* command, const std::string& flag, const std::string& help,
                          const FieldDescriptor* field, const std::string& group) {
  CLI::Option* option = nullptr;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    option = command->add_flag(flag)->description(help);
  } else {
    option = command->add_option(flag, CLI::callback_t(), help);
    // One value per flag, or `--targets a IN` would take IN; SetField checks for repetition.
    option->expected(1)->allow_extra_args(false)->type_name(ValueSyntax(field));
  }
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->group(group);
  return option;
}

std::string HelpOf(absl::string_view help, absl::string_view default_text) {
  if (default_text.empty()) return std::string(help);
  return absl::StrCat(help, " [default: ", default_text, "]");
}

absl::Status SetFromFlag(const std::string& flag, const CLI::Option* option,
                         absl::string_view field, google::protobuf::Message* message) {
  if (option->count() == 0) return absl::OkStatus();
  return SetField(flag, option->results(),
                  message->GetDescriptor()->FindFieldByName(std::string(field)), message);
}

}  // namespace spillway::cli
