#include "rewrite_core/base/known_fields.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rewrite_core/base/error.h"

namespace spillway::core {
namespace {

absl::Status UnknownField(const google::protobuf::Descriptor& message, int number) {
  const std::string field = absl::StrCat(number);
  for (int i = 0; i < message.reserved_range_count() && i < message.reserved_name_count(); ++i) {
    if (message.reserved_range(i)->start != number) continue;
    const std::string& name = message.reserved_name(i);
    return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                        absl::StrCat(message.name(), " has field ", field, ", ", name,
                                     ", which was removed from the API; leave it out"),
                        {{"option", name}, {"value", field}});
  }
  return InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                      absl::StrCat(message.name(), " has field ", field,
                                   ", which this server does not know; see GetCapabilities, "
                                   "or update the server"),
                      {{"option", message.name()}, {"value", field}});
}

}  // namespace

absl::Status CheckKnownFields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  const auto& unknown = reflection->GetUnknownFields(message);
  if (!unknown.empty()) {
    return UnknownField(*message.GetDescriptor(), unknown.field(0).number());
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      absl::Status status =
          CheckKnownFields(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                : reflection->GetMessage(message, field));
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::core
