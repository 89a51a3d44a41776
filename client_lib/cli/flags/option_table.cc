#include "client_lib/cli/flags/option_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "spillway/v1/options.pb.h"

namespace spillway::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

struct FieldText {
  const char* field;
  const char* text;
};

// The strategies, strongest first, and their descriptions.
constexpr FieldText kStrategies[] = {
    {"budget",
     "swaps and recomputes single buffers until the step fits, with the fastest plan found"},
    {"level", "swaps tensors whose consumers are many levels away (TFLMS v2)"},
    {"scope", "swaps tensors from the forward part that the backward part reads (TFLMS v1)"},
};

// Texts for the command line only: how values are written, and their sources.
constexpr FieldText kSyntax[] = {
    {"feeds",
     "--feed images=128,224,224,3 gives a shape, --feed rate= a scalar. Integers and bools may "
     "have their values, too: --feed crop=2:64,64, or --feed is_training=true. Give the flag once "
     "for each tensor."},
    {"loop_counts",
     "--loop-count rnn/while/while_context=200 names the loop by the attribute frame_name of its "
     "Enter nodes. Give the flag once for each loop."},
    {"preset",
     "A name that ends in .json or has a slash: a file with the fields of Hardware "
     "(hardware.proto) in JSON."},
    {"gpu_memory_bytes",
     "If neither this nor a named --hardware is given, it is read from nvidia-smi."},
    {"gpu_memories", "--gpu-memory /gpu:1=12GiB. Give the flag once for each GPU."},
    {"efficiencies", "--efficiency transpose=0.6. Give the flag once for each class."},
};

// Fields that require another.
constexpr FieldText kNeeds[] = {{"debug_level", "--debug"}};

struct Help {
  const char* flag;
  const char* text;
  const char* default_text;
};

const std::map<std::string, Help, std::less<>>& AllHelp() {
  static const auto& all = *new std::map<std::string, Help, std::less<>>{
#define SPILLWAY_OPTION(field, flag, text, default_text) {field, {flag, text, default_text}},
#include "option_help.inc"  // Made by client_lib/python/generate.py.
#undef SPILLWAY_OPTION
  };
  return all;
}

template <size_t n>
std::string TextOf(const FieldText (&texts)[n], const std::string& field) {
  for (const FieldText& text : texts) {
    if (text.field == field) return text.text;
  }
  return "";
}

OptionRow MakeRow(const FieldDescriptor* field, const Help& help) {
  const std::string given =
      *help.default_text == '\0' ? "" : absl::StrCat(" [default: ", help.default_text, "]");
  std::string text = absl::StrCat(help.text, " ", TextOf(kSyntax, field->name()), given);
  absl::RemoveExtraAsciiWhitespace(&text);
  return {field, help.flag, std::move(text), TextOf(kNeeds, field->name())};
}

// Returns the flags of a message, in the order of its fields.
std::vector<OptionRow> RowsOf(const Descriptor* message) {
  std::vector<OptionRow> rows;
  for (int i = 0; i < message->field_count(); ++i) {
    const auto help = AllHelp().find(message->field(i)->name());
    if (help != AllHelp().end()) rows.push_back(MakeRow(message->field(i), help->second));
  }
  return rows;
}

}  // namespace

const std::vector<OptionRow>& CommonOptions() {
  static const auto& rows = *new auto(RowsOf(v1::RewriteOptions::descriptor()));
  return rows;
}

const std::vector<OptionRow>& StepOptions() {
  static const auto& rows = *new auto(RowsOf(v1::Step::descriptor()));
  return rows;
}

const std::vector<OptionRow>& HardwareOptions() {
  static const auto& rows = *new auto(RowsOf(v1::Hardware::descriptor()));
  return rows;
}

const std::vector<StrategyTable>& Strategies() {
  static const auto& strategies = *[] {
    auto* tables = new std::vector<StrategyTable>;
    for (const FieldText& strategy : kStrategies) {
      const auto* field = v1::RewriteOptions::descriptor()->FindFieldByName(strategy.field);
      tables->push_back({strategy.field, strategy.text, RowsOf(field->message_type())});
    }
    return tables;
  }();
  return strategies;
}

OptionRow RowOf(const Descriptor* message, const std::string& field) {
  return MakeRow(message->FindFieldByName(field), AllHelp().at(field));
}

const std::map<std::string, std::string, std::less<>>& FlagsByField() {
  static const auto& flags = *[] {
    // Those of the other fields that explore and inspect have a flag for, and of CallOptions.
    auto* all = new std::map<std::string, std::string, std::less<>>{
        {"sizes", "--sizes"}, {"largest_tensor_count", "--top"}, {"keep_best", "--keep-best"}};
    for (const auto& [field, help] : AllHelp()) all->emplace(field, help.flag);
    return all;
  }();
  return flags;
}

}  // namespace spillway::cli
