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

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* StrategyField(const StrategyTable& strategy) {
  return v1::RewriteOptions::descriptor()->FindFieldByName(strategy.name);
}

std::string NamesOf(const std::vector<StrategyTable>& strategies, absl::string_view separator) {
  return absl::StrJoin(strategies, separator, [](std::string* out, const StrategyTable& strategy) {
    absl::StrAppend(out, strategy.name);
  });
}

bool Has(const StrategyTable& strategy, const std::string& flag) {
  return std::any_of(strategy.rows.begin(), strategy.rows.end(),
                     [&flag](const OptionRow& row) { return row.flag == flag; });
}

// Returns those of `strategies` that have `flag`.
std::vector<StrategyTable> OwnersOf(const std::string& flag,
                                    const std::vector<StrategyTable>& strategies) {
  std::vector<StrategyTable> owners;
  for (const StrategyTable& strategy : strategies) {
    if (Has(strategy, flag)) owners.push_back(strategy);
  }
  return owners;
}

}  // namespace

OptionFlags::OptionFlags(CLI::App* command, const std::vector<StrategyTable>& strategies)
    : command_(command), strategies_(strategies) {
  std::string help =
      "The policy that chooses what to swap and recompute. A flag of another strategy is an error.";
  for (const StrategyTable& strategy : strategies_) {
    absl::StrAppend(&help, " ", strategy.name, ": ", strategy.help, ".");
  }
  absl::StrAppend(&help, " [default: ", strategies_[0].name, "]");
  strategy_ = command_->add_option("--strategy", CLI::callback_t(), help);
  strategy_->type_name(NamesOf(strategies_, "|"))->group("What to swap");
  for (const OptionRow& row : CommonOptions()) Add(row, "What to swap");
  for (const OptionRow& row : StepOptions()) Add(row, kStepGroup);
  for (const OptionRow& row : HardwareOptions()) Add(row, kHardwareGroup);
  for (const StrategyTable& strategy : strategies_) {
    for (const OptionRow& row : strategy.rows) {
      if (flags_.count(row.flag) > 0) continue;  // Already added for another strategy.
      Add(row, absl::StrCat("Strategy ", NamesOf(OwnersOf(row.flag, strategies_), ", ")));
    }
    for (const OptionRow& row : strategy.rows) {
      if (!row.needs.empty()) flags_.at(row.flag)->needs(flags_.at(row.needs));
    }
  }
}

void OptionFlags::Add(const OptionRow& row, const std::string& group) {
  flags_[row.flag] = AddFieldFlag(command_, row, group);
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
    if (flags_.at(row.flag)->count() == 0) continue;
    if (absl::Status status = Set(row, options.mutable_step()); !status.ok()) return status;
  }
  for (const OptionRow& row : HardwareOptions()) {
    if (flags_.at(row.flag)->count() == 0) continue;
    absl::Status status = Set(row, options.mutable_step()->mutable_hardware());
    if (!status.ok()) return status;
  }
  Message* parameters = nullptr;  // Created on demand: an unset strategy means the default.
  const auto mutable_parameters = [&] {
    return options.GetReflection()->MutableMessage(&options, StrategyField(**strategy));
  };
  if (strategy_->count() > 0) parameters = mutable_parameters();
  for (const OptionRow& row : (*strategy)->rows) {
    if (flags_.at(row.flag)->count() == 0) continue;
    if (parameters == nullptr) parameters = mutable_parameters();
    if (absl::Status status = Set(row, parameters); !status.ok()) return status;
  }
  return options;
}

absl::Status OptionFlags::Set(const OptionRow& row, Message* message) const {
  return SetFromFlag(row, flags_.at(row.flag), message);
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
      const std::string& flag = row.flag;
      if (flags_.at(flag)->count() == 0 || Has(chosen, flag)) continue;
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
