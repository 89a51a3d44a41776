#include "client_lib/cli/flags/field_flag.h"

#include "client_lib/cli/flags/option_value.h"

namespace spillway::cli {

using google::protobuf::FieldDescriptor;

CLI::Option* AddFieldFlag(CLI::App* command, const OptionRow& row, const std::string& group) {
  CLI::Option* option = nullptr;
  if (row.field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    option = command->add_flag(row.flag)->description(row.help);
  } else {
    option = command->add_option(row.flag, CLI::callback_t(), row.help);
    // One value per flag, or `--targets a IN` would take IN; SetField checks for repetition.
    option->expected(1)->allow_extra_args(false)->type_name(ValueSyntax(row.field));
  }
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->group(group);
  return option;
}

absl::Status SetFromFlag(const OptionRow& row, const CLI::Option* option,
                         google::protobuf::Message* message) {
  if (option->count() == 0) return absl::OkStatus();
  return SetField(row.flag, option->results(), row.field, message);
}

}  // namespace spillway::cli
