#include "client_lib/cli/flags/option_flags.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client_lib/cli/flags/field_flag.h"
#include "google/protobuf/descriptor.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* FieldOf(const Descriptor* message, absl::string_view name) {
  return message->FindFieldByName(std::string(name));
}

const FieldDescriptor* StrategyField(const StrategyTable& strategy) {
  return FieldOf(v1::RewriteOptions::descriptor(), strategy.name);
}

std::string NamesOf(absl::Span<const StrategyTable> strategies, absl::string_view separator) {
  return absl::StrJoin(strategies, separator, [](std::string* out, const StrategyTable& strategy) {
    absl::StrAppend(out, strategy.name);
  });
}

// Returns the row of `flag`; null if `strategy` does not have it.
const OptionRow* FindRow(const StrategyTable& strategy, const std::string& flag) {
  for (const OptionRow& row : strategy.rows) {
    if (FlagOf(row) == flag) return &row;
  }
  return nullptr;
}

// Returns the row of a field that `strategy` has.
const OptionRow* FindField(const StrategyTable& strategy, absl::string_view field) {
  return std::find_if(strategy.rows.begin(), strategy.rows.end(),
                      [field](const OptionRow& row) { return row.field == field; });
}

// Returns those of `strategies` that have `flag`.
std::vector<StrategyTable> OwnersOf(const std::string& flag,
                                    absl::Span<const StrategyTable> strategies) {
  std::vector<StrategyTable> owners;
  for (const StrategyTable& strategy : strategies) {
    if (FindRow(strategy, flag) != nullptr) owners.push_back(strategy);
  }
  return owners;
}

// Returns the default of `flag`, with the strategies' names if their defaults differ.
std::string DefaultOf(const std::string& flag, const std::vector<StrategyTable>& owners) {
  const absl::string_view first = FindRow(owners[0], flag)->default_text;
  std::vector<std::string> texts;
  bool same = true;
  for (const StrategyTable& owner : owners) {
    const absl::string_view text = FindRow(owner, flag)->default_text;
    same = same && text == first;
    texts.push_back(absl::StrCat(owner.name, ": ", text.empty() ? "none" : text));
  }
  return same ? std::string(first) : absl::StrJoin(texts, "; ");
}

}  // namespace

OptionFlags::OptionFlags(CLI::App* command, absl::Span<const StrategyTable> strategies)
    : command_(command), strategies_(strategies) {
  strategy_ = command_->add_option(
      "--strategy", CLI::callback_t(),
      absl::StrCat("The policy that chooses the swaps. Flags of another than the default are an "
                   "error without it. [default: ",
                   strategies_[0].name, "]"));
  strategy_->type_name(NamesOf(strategies_, "|"))->group("What to swap");
  for (const OptionRow& row : CommonOptions()) {
    Add(FlagOf(row), HelpOf(row.help, row.default_text),
        FieldOf(v1::RewriteOptions::descriptor(), row.field), "What to swap");
  }
  for (const OptionRow& row : StepOptions()) {
    Add(FlagOf(row), HelpOf(row.help, row.default_text), FieldOf(v1::Step::descriptor(), row.field),
        kStepGroup);
  }
  for (const OptionRow& row : HardwareOptions()) {
    Add(FlagOf(row), HelpOf(row.help, row.default_text),
        FieldOf(v1::Hardware::descriptor(), row.field), kHardwareGroup);
  }
  for (const StrategyTable& strategy : strategies_) {
    for (const OptionRow& row : strategy.rows) {
      const std::string flag = FlagOf(row);
      if (flags_.count(flag) > 0) continue;  // Already added for another strategy.
      const std::vector<StrategyTable> owners = OwnersOf(flag, strategies_);
      Add(flag, HelpOf(row.help, DefaultOf(flag, owners)),
          FieldOf(StrategyField(strategy)->message_type(), row.field),
          absl::StrCat("Strategy ", NamesOf(owners, ", ")));
    }
    for (const OptionRow& row : strategy.rows) {
      if (row.needs.empty()) continue;
      flags_.at(FlagOf(row))->needs(flags_.at(FlagOf(*FindField(strategy, row.needs))));
    }
  }
}

void OptionFlags::Add(const std::string& flag, const std::string& help,
                      const FieldDescriptor* field, const std::string& group) {
  flags_[flag] = AddFieldFlag(command_, flag, help, field, group);
}

absl::StatusOr<v1::RewriteOptions> OptionFlags::Build() const {
  absl::StatusOr<const StrategyTable*> strategy = ChosenStrategy();
  if (!strategy.ok()) return strategy.status();
  if (absl::Status status = CheckNoOtherFlags(**strategy); !status.ok()) return status;

  v1::RewriteOptions options;
  for (const OptionRow& row : CommonOptions()) {
    if (absl::Status status = Set(row, &options); !status.ok()) return status;
  }
  for (const OptionRow& row : StepOptions()) {
    if (flags_.at(FlagOf(row))->count() == 0) continue;
    if (absl::Status status = Set(row, options.mutable_step()); !status.ok()) return status;
  }
  for (const OptionRow& row : HardwareOptions()) {
    if (flags_.at(FlagOf(row))->count() == 0) continue;
    absl::Status status = Set(row, options.mutable_step()->mutable_hardware());
    if (!status.ok()) return status;
  }
  Message* parameters = nullptr;  // Created on demand: an unset strategy means the default.
  const auto mutable_parameters = [&] {
    return options.GetReflection()->MutableMessage(&options, StrategyField(**strategy));
  };
  if (strategy_->count() > 0) parameters = mutable_parameters();
  for (const OptionRow& row : (*strategy)->rows) {
    if (flags_.at(FlagOf(row))->count() == 0) continue;
    if (parameters == nullptr) parameters = mutable_parameters();
    if (absl::Status status = Set(row, parameters); !status.ok()) return status;
  }
  return options;
}

absl::Status OptionFlags::Set(const OptionRow& row, Message* message) const {
  const std::string flag = FlagOf(row);
  return SetFromFlag(flag, flags_.at(flag), row.field, message);
}

absl::StatusOr<const StrategyTable*> OptionFlags::ChosenStrategy() const {
  if (strategy_->count() == 0) return &strategies_[0];
  const std::string name = strategy_->results().back();
  for (const StrategyTable& strategy : strategies_) {
    if (strategy.name == name) return &strategy;
  }
  return core::InvalidError(v1::ERROR_REASON_UNKNOWN_OPTION,
                            absl::StrCat("there is no strategy ", core::Quoted(name),
                                         "; give one of: ", NamesOf(strategies_, ", "),
                                         " (to undo a rewrite: spillway strip)"),
                            {{"flag", "--strategy"}, {"value", name}});
}

absl::Status OptionFlags::CheckNoOtherFlags(const StrategyTable& chosen) const {
  for (const StrategyTable& strategy : strategies_) {
    for (const OptionRow& row : strategy.rows) {
      const std::string flag = FlagOf(row);
      if (flags_.at(flag)->count() == 0 || FindRow(chosen, flag) != nullptr) continue;
      return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS,
                                absl::StrCat(flag, " does not belong to the strategy ", chosen.name,
                                             strategy_->count() == 0 ? ", the default" : "",
                                             "; leave it out, or give --strategy ",
                                             NamesOf(OwnersOf(flag, strategies_), " or ")),
                                {{"flag", flag}, {"strategy", chosen.name}});
    }
  }
  return absl::OkStatus();
}

}  // namespace spillway::cli
