#include "client_lib/cli/flags/option_value.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "client_lib/cli/files/input_file.h"
#include "rewrite_core/base/byte_text.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status BadValue(absl::string_view flag, absl::string_view text, absl::string_view expected) {
  return core::InvalidError(v1::ERROR_REASON_BAD_OPTION,
                            absl::StrCat(flag, ": ", core::Quoted(text), " is not ", expected),
                            {{"flag", flag}, {"value", text}});
}

absl::Status ParseByteCount(absl::string_view flag, absl::string_view text, int64_t* value) {
  const absl::optional<int64_t> bytes = core::ParseBytes(text);
  // The core, which knows the range, rejects a plain negative number.
  const bool is_negative = absl::StartsWith(text, "-") && absl::SimpleAtoi(text, value);
  if (!bytes.has_value() && !is_negative) return BadValue(flag, text, core::kByteGrammar);
  if (bytes.has_value()) *value = *bytes;
  return absl::OkStatus();
}

template <typename Int>
absl::Status ParseInt(absl::string_view flag, absl::string_view text, Int* value) {
  if (absl::SimpleAtoi(text, value)) return absl::OkStatus();
  return BadValue(flag, text,
                  absl::StrCat("a whole number from ", std::numeric_limits<Int>::min(), " to ",
                               std::numeric_limits<Int>::max()));
}

// Returns the prefix of all values of an enum, `ALREADY_REWRITTEN_` for AlreadyRewritten
// (protobuf's style guide).
std::string EnumPrefix(const EnumDescriptor* type) {
  return std::string(absl::StripSuffix(type->value(0)->name(), "UNSPECIFIED"));
}

std::string Spelling(const EnumValueDescriptor* value) {
  return absl::AsciiStrToLower(absl::StripPrefix(value->name(), EnumPrefix(value->type())));
}

const EnumValueDescriptor* FindEnumValue(const EnumDescriptor* type, absl::string_view text) {
  for (int i = 1; i < type->value_count(); ++i) {
    if (absl::EqualsIgnoreCase(Spelling(type->value(i)), text)) return type->value(i);
  }
  return nullptr;
}

absl::Status SetScalar(absl::string_view flag, const std::string& text,
                       const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      if (field->type() != FieldDescriptor::TYPE_BYTES) {
        reflection->SetString(message, field, text);
        return absl::OkStatus();
      }
      // The one field of bytes that has a flag is a profile.
      absl::StatusOr<std::string> bytes =
          ReadBytes(text, FileKind::kProfile, "give the path of a file", CancellationToken());
      if (!bytes.ok()) return bytes.status();
      // An empty field would count as not given.
      if (bytes->empty()) return BadValue(flag, text, "a file with something in it");
      reflection->SetString(message, field, *std::move(bytes));
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t value = 0;
      if (absl::Status status = ParseInt(flag, text, &value); !status.ok()) return status;
      reflection->SetInt32(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      const bool is_bytes = absl::EndsWith(field->name(), "_bytes");
      absl::Status status =
          is_bytes ? ParseByteCount(flag, text, &value) : ParseInt(flag, text, &value);
      if (!status.ok()) return status;
      reflection->SetInt64(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(text, &value)) return BadValue(flag, text, "a number");
      reflection->SetDouble(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool value = false;
      if (!absl::SimpleAtob(text, &value)) return BadValue(flag, text, "true or false");
      reflection->SetBool(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value = FindEnumValue(field->enum_type(), text);
      if (value == nullptr) {
        return BadValue(flag, text, absl::StrJoin(EnumSpellings(field->enum_type()), " or "));
      }
      reflection->SetEnum(message, field, value);
      return absl::OkStatus();
    }
    default:
      return core::Error(
          absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
          absl::StrCat(flag, ": fields of type ", field->type_name(), " have no flag syntax"));
  }
}

absl::Status AddItem(absl::string_view flag, const std::string& text, const FieldDescriptor* field,
                     Message* message) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    message->GetReflection()->AddString(message, field, text);
    return absl::OkStatus();
  }
  return core::Error(absl::StatusCode::kInternal, v1::ERROR_REASON_INTERNAL,
                     absl::StrCat(flag, ": lists of ", field->type_name(), " have no flag syntax"));
}

// Empty for a scalar.
std::vector<absl::string_view> SplitDims(absl::string_view dims) {
  if (dims.empty()) return {};
  return absl::StrSplit(dims, ',');
}

bool IsFeed(const FieldDescriptor* field) {
  return field->message_type() == v1::Feed::descriptor();
}

// The parts before and after the last '='; nullopt without one, or with nothing before it.
absl::optional<std::pair<std::string, absl::string_view>> SplitEntry(absl::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == absl::string_view::npos || equals == 0) return absl::nullopt;
  return std::make_pair(std::string(text.substr(0, equals)), text.substr(equals + 1));
}

bool IsLoopCount(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field->message_type() == v1::LoopCount::descriptor();
}

absl::Status AddLoopCounts(absl::string_view flag, const std::vector<std::string>& texts,
                           const FieldDescriptor* field, Message* message) {
  for (const std::string& text : texts) {
    v1::LoopCount loop;
    const auto entry = SplitEntry(text);
    int64_t count = 0;
    if (!entry || !absl::SimpleAtoi(entry->second, &count)) {
      return BadValue(flag, text, "NAME=N, e.g. rnn/while/while_context=200");
    }
    loop.set_name(entry->first);
    loop.set_count(count);
    message->GetReflection()->AddMessage(message, field)->CopyFrom(loop);
  }
  return absl::OkStatus();
}

bool IsGpuMemory(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field->message_type() == v1::GpuMemory::descriptor();
}

absl::Status AddGpuMemories(absl::string_view flag, const std::vector<std::string>& texts,
                            const FieldDescriptor* field, Message* message) {
  for (const std::string& text : texts) {
    v1::GpuMemory memory;
    const auto entry = SplitEntry(text);
    int64_t bytes = 0;
    if (!entry) {
      const bool is_count = ParseByteCount(flag, text, &bytes).ok();
      return BadValue(flag, text,
                      absl::StrCat("DEVICE=BYTES, e.g. /gpu:1=12GiB; for all GPUs give "
                                   "--gpu-memory-bytes ",
                                   is_count ? text : "8GiB"));
    }
    if (absl::Status s = ParseByteCount(flag, entry->second, &bytes); !s.ok()) return s;
    memory.set_device(entry->first);
    memory.set_gpu_memory_bytes(bytes);
    message->GetReflection()->AddMessage(message, field)->CopyFrom(memory);
  }
  return absl::OkStatus();
}

bool IsEfficiency(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field->message_type() == v1::KernelEfficiency::descriptor();
}

absl::Status AddEfficiencies(absl::string_view flag, const std::vector<std::string>& texts,
                             const FieldDescriptor* field, Message* message) {
  for (const std::string& text : texts) {
    v1::KernelEfficiency kernels;
    const auto entry = SplitEntry(text);
    double efficiency = 0;
    if (!entry || !absl::SimpleAtod(entry->second, &efficiency)) {
      return BadValue(flag, text, "CLASS=X, e.g. transpose=0.6");
    }
    kernels.set_kernels(entry->first);
    kernels.set_efficiency(efficiency);
    message->GetReflection()->AddMessage(message, field)->CopyFrom(kernels);
  }
  return absl::OkStatus();
}

absl::Status AddFeeds(absl::string_view flag, const std::vector<std::string>& texts,
                      const FieldDescriptor* field, Message* message) {
  for (const std::string& text : texts) {
    v1::Feed feed;
    if (absl::Status s = AddFeed(flag, text, FeedSizes::kFixed, &feed); !s.ok()) return s;
    message->GetReflection()->AddMessage(message, field)->CopyFrom(feed);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetField(absl::string_view flag, const std::vector<std::string>& texts,
                      const FieldDescriptor* field, Message* message) {
  if (IsFeed(field)) return AddFeeds(flag, texts, field, message);
  if (IsLoopCount(field)) return AddLoopCounts(flag, texts, field, message);
  if (IsGpuMemory(field)) return AddGpuMemories(flag, texts, field, message);
  if (IsEfficiency(field)) return AddEfficiencies(flag, texts, field, message);
  if (!field->is_repeated()) {
    if (texts.size() != 1) {
      return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                                RepeatedText(flag, texts.size()), {{"flag", flag}});
    }
    return SetScalar(flag, texts[0], field, message);
  }
  const bool whole = texts.size() > 1;
  for (const std::string& text : texts) {
    for (const std::string& item : whole ? std::vector<std::string>{text} : SplitList(text)) {
      if (item.empty()) return BadValue(flag, text, "a list without empty items");
      if (absl::Status status = AddItem(flag, item, field, message); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

std::string RepeatedText(absl::string_view flag, size_t times) {
  return absl::StrCat(flag, " is given ", times, " times; give it once");
}

std::vector<std::string> SplitList(absl::string_view text) {
  std::vector<std::string> items(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
      items.back() += ',';
      ++i;
    } else if (text[i] == ',') {
      items.emplace_back();
    } else {
      items.back() += text[i];
    }
  }
  return items;
}

absl::Status AddFeed(absl::string_view flag, const std::string& text, FeedSizes sizes,
                     v1::Feed* feed) {
  // The last `=`: TensorFlow's names contain none, and a shape never does.
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    return BadValue(flag, text, "NAME=DIM,DIM,..., e.g. images=128,224,224,3");
  }
  feed->set_name(text.substr(0, equals));
  const std::string fed = text.substr(equals + 1);
  if (fed == "true" || fed == "false") {  // Same as `:true`: a scalar with this value.
    feed->add_values(fed == "true");
    return absl::OkStatus();
  }
  const size_t colon = fed.find(':');
  for (absl::string_view dim : SplitDims(absl::string_view(fed).substr(0, colon))) {
    int64_t value = 0;
    if (sizes == FeedSizes::kMayVary && dim == "N") {
      value = -1;
    } else if (!absl::SimpleAtoi(dim, &value) || value < 0) {
      return BadValue(flag, text,
                      absl::StrCat("NAME=DIM,DIM,... with whole numbers from 0 to 2^31 - 1",
                                   sizes == FeedSizes::kMayVary
                                       ? ", or N for the size that varies"
                                       : "; a size that varies is given as it will be in the "
                                         "step that must fit"));
    }
    feed->add_dims(value);
  }
  if (colon == std::string::npos) return absl::OkStatus();
  for (absl::string_view item : absl::StrSplit(absl::string_view(fed).substr(colon + 1), ',')) {
    int64_t value = 0;
    if (item == "true" || item == "false") {
      value = item == "true";
    } else if (!absl::SimpleAtoi(item, &value)) {
      return BadValue(flag, text,
                      "NAME=DIM,DIM,...:VALUE,VALUE,... with whole numbers, true or false as "
                      "values, e.g. is_training=true");
    }
    feed->add_values(value);
  }
  return absl::OkStatus();
}

std::vector<std::string> EnumSpellings(const EnumDescriptor* type) {
  std::vector<std::string> spellings;
  for (int i = 1; i < type->value_count(); ++i) spellings.push_back(Spelling(type->value(i)));
  return spellings;
}

std::string ValueSyntax(const FieldDescriptor* field) {
  if (IsFeed(field)) return "NAME=DIM,...[:VALUE,...]";
  if (IsLoopCount(field)) return "NAME=N";
  if (IsGpuMemory(field)) return "DEVICE=BYTES";
  if (IsEfficiency(field)) return "CLASS=X";
  if (field->is_repeated()) return "A,B,...";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return "N";
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::EndsWith(field->name(), "_bytes") ? "BYTES" : "N";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "X";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrJoin(EnumSpellings(field->enum_type()), "|");
    case FieldDescriptor::CPPTYPE_BOOL:
      return "";
    default:
      return field->type() == FieldDescriptor::TYPE_BYTES ? "FILE" : "TEXT";
  }
}

}  // namespace spillway::cli
