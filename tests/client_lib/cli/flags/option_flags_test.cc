// The flags of the proto's fields, and the results of command lines.
#include "client_lib/cli/flags/option_flags.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client_lib/cli/flags/option_table.h"
#include "client_lib/cli/flags/option_value.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/names.h"
#include "rewrite_core/rewriter.h"
#include "rewrite_core/strategy/strategies.h"
#include "tests/testing/sizes.h"

namespace spillway::cli {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Every field of `message` but `others` has a flag with help.
void CheckTable(const Descriptor* message, const std::vector<OptionRow>& rows,
                const std::set<std::string>& others) {
  std::set<std::string> in_table;
  for (const OptionRow& row : rows) {
    in_table.insert(row.field->name());
    EXPECT_EQ(row.field->containing_type(), message) << row.flag;
    EXPECT_NE(row.help[0], '[') << row.flag << " has a default alone";
  }
  for (int i = 0; i < message->field_count(); ++i) {
    const std::string& name = message->field(i)->name();
    EXPECT_EQ(in_table.count(name) + others.count(name), 1) << message->name() << "." << name;
  }
}

TEST(OptionTableTest, CommonFieldsHaveTheirFlags) {
  const Descriptor* message = v1::RewriteOptions::descriptor();
  // From -o, --report and --patch; flags of its own.
  std::set<std::string> others = {"outputs", "step"};
  const auto* strategy = message->FindOneofByName("strategy");
  for (int i = 0; i < strategy->field_count(); ++i) others.insert(strategy->field(i)->name());
  CheckTable(message, CommonOptions(), others);
}

TEST(OptionTableTest, StepAndHardwareHaveTheirFlags) {
  CheckTable(v1::Step::descriptor(), StepOptions(), {"hardware"});  // Flags of its own.
  // Not for users to say.
  CheckTable(v1::Hardware::descriptor(), HardwareOptions(), {"gpu_memory_source"});
}

TEST(OptionTableTest, EveryStrategyHasItsTable) {
  const auto* oneof = v1::RewriteOptions::descriptor()->FindOneofByName("strategy");
  for (int i = 0; i < oneof->field_count(); ++i) {
    const FieldDescriptor* field = oneof->field(i);
    // Commands of their own.
    if (field->name() == "strip" || field->name() == "apply") continue;
    const auto table =
        std::find_if(Strategies().begin(), Strategies().end(),
                     [field](const StrategyTable& t) { return t.name == field->name(); });
    ASSERT_NE(table, Strategies().end()) << field->name() << " has no table";
    CheckTable(field->message_type(), table->rows, {});
  }
}

// Returns the help of a flag that all tables have.
std::string HelpOf(const std::string& flag) {
  for (const auto& rows :
       {CommonOptions(), StepOptions(), HardwareOptions(), Strategies()[0].rows}) {
    for (const OptionRow& row : rows) {
      if (row.flag == flag) return row.help;
    }
  }
  return "";
}

TEST(OptionTableTest, HelpIsTheCommentInTermsOfTheCommandLine) {
  EXPECT_EQ(HelpOf("--eff-conv"),
            "The share of --peak-flops that convolutions reach. Range: above 0, at most 1. "
            "[default: the preset's]");
  // Names of errors are left out.
  EXPECT_THAT(HelpOf("--targets"), HasSubstr("(or tensors, node:port) that the step runs. Each "
                                             "must exist; after a rewrite the verifier"));
  // Values of enums are explained, and spelled as in flags.
  EXPECT_THAT(HelpOf("--planning-effort"), HasSubstr(" medium: at most 128 plans. high: at most"));
  EXPECT_THAT(HelpOf("--planning-effort"), EndsWith("[default: medium]"));
  EXPECT_THAT(HelpOf("--objective"), HasSubstr("within --max-slowdown is found"));
  EXPECT_THAT(HelpOf("--max-slowdown"), EndsWith("[default: no limit; with smallest_peak, 1.1]"));
  // How a value is written.
  EXPECT_THAT(HelpOf("--feed"), HasSubstr("--feed images=128,224,224,3 gives a shape"));
  // Names other than our fields stay.
  EXPECT_THAT(HelpOf("--internal-fragmentation-fraction"),
              HasSubstr("gpu_options.experimental.internal_fragmentation_fraction in the"));
}

TEST(OptionTableTest, TheFirstStrategyIsTheDefaultOfTheCore) {
  EXPECT_EQ(std::string(Strategies()[0].name), core::StrategyName(core::Strategies()[0]));
}

TEST(OptionTableTest, AFlagIsTheNameOfItsFieldWithDashes) {
  const std::map<std::string, std::string> others = {{"feeds", "--feed"},
                                                     {"loop_counts", "--loop-count"},
                                                     {"preset", "--hardware"},
                                                     {"gpu_memories", "--gpu-memory"},
                                                     {"efficiencies", "--efficiency"},
                                                     {"largest_tensor_count", "--top"}};
  for (const auto& [field, flag] : FlagsByField()) {
    const auto other = others.find(field);
    EXPECT_EQ(flag, other != others.end()
                        ? other->second
                        : absl::StrCat("--", absl::StrReplaceAll(field, {{"_", "-"}})));
  }
}

TEST(OptionTableTest, HelpNamesEveryFlag) {
  CLI::App app;
  const OptionFlags flags(&app);
  const std::string help = app.help();
  const auto check = [&help](const std::vector<OptionRow>& rows) {
    for (const OptionRow& row : rows) {
      EXPECT_THAT(help, HasSubstr(absl::StrCat("  ", row.flag, " ")));
      EXPECT_THAT(help, HasSubstr(row.help));
    }
  };
  check(CommonOptions());
  check(StepOptions());
  check(HardwareOptions());
  for (const StrategyTable& strategy : Strategies()) check(strategy.rows);
}

// The options of a command line.
absl::StatusOr<v1::RewriteOptions> Parse(
    std::vector<std::string> arguments,
    const std::vector<StrategyTable>& strategies = Strategies()) {
  CLI::App app;
  const OptionFlags flags(&app, strategies);
  std::reverse(arguments.begin(), arguments.end());  // What this overload of parse wants.
  app.parse(arguments);
  return flags.Build();
}

MATCHER_P(Is, expected, "") {
  std::string difference;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (!arg.ok()) {
    *result_listener << arg.status();
    return false;
  }
  const bool same = differencer.Compare(expected, *arg);
  *result_listener << difference;
  return same;
}

MATCHER_P2(FailsWith, reason, text, "") {
  *result_listener << arg.status();
  return core::GetErrorReason(arg.status()) == reason &&
         std::string(arg.status().message()).find(text) != std::string::npos;
}

TEST(OptionFlagsTest, NothingGivenLeavesEverythingToTheCore) {
  EXPECT_THAT(Parse({}), Is(v1::RewriteOptions()));
}

TEST(OptionFlagsTest, AStrategyAloneIsSetWithoutParameters) {
  v1::RewriteOptions expected;
  expected.mutable_scope();
  EXPECT_THAT(Parse({"--strategy", "scope"}), Is(expected));
}

TEST(OptionFlagsTest, EveryFlagOfScopeSetsItsField) {
  v1::RewriteOptions expected;
  v1::ScopeStrategy* scope = expected.mutable_scope();
  scope->add_optimizer_scopes("gradients");
  scope->add_optimizer_scopes("Momentum");
  scope->set_starting_scope("conv1");
  scope->add_starting_op_names("a");
  scope->add_excl_scopes("b");
  scope->add_incl_scopes("c");
  scope->add_excl_types("Conv2D");
  scope->add_incl_types("Relu");
  scope->set_n_tensors(0);
  scope->set_lb(3);
  scope->set_ub(70);
  scope->set_fuse_swapins(true);
  scope->set_ctrld_strategy(v1::ScopeStrategy::CTRLD_STRATEGY_DIRECT_ORDER);
  scope->set_swap_branches(true);
  scope->set_branch_threshold(2);
  expected.set_cpu_device("/cpu:1");
  EXPECT_THAT(Parse(absl::StrSplit(
                  "--strategy scope --optimizer-scopes gradients --optimizer-scopes Momentum "
                  "--starting-scope conv1 --starting-op-names a --excl-scopes b --incl-scopes c "
                  "--excl-types Conv2D --incl-types Relu --n-tensors 0 --lb 3 --ub=70 "
                  "--fuse-swapins --ctrld-strategy direct_order --swap-branches "
                  "--branch-threshold 2 --cpu-device /cpu:1",
                  ' ')),
              Is(expected));
}

TEST(OptionFlagsTest, EveryFlagOfLevelSetsItsField) {
  v1::RewriteOptions expected;
  v1::LevelStrategy* level = expected.mutable_level();
  level->set_swapout_threshold(-1);
  level->set_swapin_ahead(7);
  level->set_swapin_groupby(0);
  level->set_sync_mode(3);
  for (const char* slice : {"12", "3:5", "-10:"}) level->add_serialization(slice);
  level->set_serialization_by_size(0.5);
  level->add_excl_output_by_scopes("a");
  level->add_incl_output_by_scopes("b");
  level->add_excl_output_by_types("C");
  level->add_incl_output_by_types("D");
  level->add_excl_input_by_scopes("e");
  level->add_incl_input_by_scopes("f");
  level->add_excl_input_by_types("G");
  level->add_incl_input_by_types("H");
  level->set_is_training(false);
  level->set_pace(true);
  expected.set_cpu_device("/cpu:1");
  EXPECT_THAT(Parse(absl::StrSplit(
                  "--strategy level --swapout-threshold -1 --swapin-ahead 7 --swapin-groupby=0 "
                  "--sync-mode 3 --serialization 12,3:5,-10: --serialization-by-size 0.5 "
                  "--excl-output-by-scopes a --incl-output-by-scopes b --excl-output-by-types C "
                  "--incl-output-by-types D --excl-input-by-scopes e --incl-input-by-scopes f "
                  "--excl-input-by-types G --incl-input-by-types H --is-training=false --pace "
                  "--cpu-device /cpu:1",
                  ' ')),
              Is(expected));
}

TEST(OptionFlagsTest, EveryFlagOfBudgetSetsItsField) {
  v1::RewriteOptions expected;
  v1::BudgetStrategy* budget = expected.mutable_budget();
  budget->set_planning_effort(v1::PLANNING_EFFORT_HIGH);
  budget->set_objective(v1::PLANNING_OBJECTIVE_SMALLEST_PEAK);
  budget->set_max_slowdown(1.25);
  EXPECT_THAT(Parse({"--strategy", "budget", "--planning-effort", "high", "--objective",
                     "smallest_peak", "--max-slowdown", "1.25"}),
              Is(expected));
  EXPECT_THAT(Parse({"--planning-effort=high", "--objective=smallest_peak", "--max-slowdown=1.25"}),
              Is(expected));
}

// A slice that begins with a minus sign is a value, not a flag.
TEST(OptionFlagsTest, ASliceMayCountFromTheEnd) {
  v1::RewriteOptions expected;
  expected.mutable_level()->add_serialization("-10:");
  EXPECT_THAT(Parse({"--strategy", "level", "--serialization", "-10:"}), Is(expected));
}

TEST(OptionFlagsTest, AFlagThatNeedsAnotherIsAnErrorWithoutIt) {
  const std::vector<std::string> alone = {"--strategy", "scope", "--debug-level", "2"};
  EXPECT_THROW(Parse(alone).IgnoreError(), CLI::RequiresError);
  v1::RewriteOptions expected;
  expected.mutable_scope()->set_debug(true);
  expected.mutable_scope()->set_debug_level(2);
  EXPECT_THAT(Parse({"--strategy", "scope", "--debug-level", "2", "--debug"}), Is(expected));
}

TEST(OptionFlagsTest, EveryCommonFlagSetsItsField) {
  v1::RewriteOptions expected;
  v1::Feed* images = expected.mutable_step()->add_feeds();
  images->set_name("images");
  images->add_dims(128);
  images->add_dims(3);
  expected.mutable_step()->add_feeds()->set_name("rate:0");
  expected.mutable_step()->set_batch_size(128);
  expected.mutable_step()->add_targets("train");
  expected.mutable_step()->add_targets("loss:0");
  expected.add_devices("/gpu:0");
  expected.set_min_tensor_bytes(int64_t{1} << 40);
  expected.set_already_rewritten(v1::ALREADY_REWRITTEN_REPLAN);
  expected.set_decision_detail(v1::DECISION_DETAIL_NONE);
  expected.set_inline_calls(v1::INLINE_CALLS_NEVER);
  expected.set_dry_run(true);
  EXPECT_THAT(Parse({"--feed", "images=128,3", "--feed", "rate:0=", "--batch-size", "128",
                     "--targets", "train,loss:0", "--devices", "/gpu:0", "--min-tensor-bytes",
                     "1099511627776", "--already-rewritten", "replan", "--decision-detail", "none",
                     "--inline-calls", "never", "--dry-run"}),
              Is(expected));
}

TEST(OptionFlagsTest, AFlagOfTheDefaultStrategyChoosesIt) {
  v1::RewriteOptions expected;
  expected.mutable_scope()->set_n_tensors(-1);
  EXPECT_THAT(Parse({"--strategy", "scope", "--n-tensors", "-1"}), Is(expected));
  v1::RewriteOptions of_default;
  of_default.mutable_budget()->set_planning_effort(v1::PLANNING_EFFORT_LOW);
  EXPECT_THAT(Parse({"--planning-effort", "low"}), Is(of_default));
}

TEST(OptionFlagsTest, AListGivenOnceIsSplitAtCommasUnlessABackslashStandsBefore) {
  v1::RewriteOptions expected;
  for (const char* scope : {"a{1,2}", "b", "c\\.d"}) {
    expected.mutable_scope()->add_optimizer_scopes(scope);
  }
  EXPECT_THAT(Parse({"--strategy", "scope", "--optimizer-scopes", "a{1\\,2},b,c\\.d"}),
              Is(expected));
}

TEST(OptionFlagsTest, AListWhoseFlagIsRepeatedTakesEachValueWhole) {
  v1::RewriteOptions expected;
  for (const char* scope : {"a{1,2}", "b", "c\\.d"}) {
    expected.mutable_scope()->add_optimizer_scopes(scope);
  }
  EXPECT_THAT(Parse({"--strategy", "scope", "--optimizer-scopes", "a{1,2}", "--optimizer-scopes",
                     "b", "--optimizer-scopes", "c\\.d"}),
              Is(expected));
}

TEST(OptionFlagsTest, WrongValuesNameFlagAndValue) {
  const auto bad = v1::ERROR_REASON_BAD_OPTION;
  EXPECT_THAT(Parse({"--lb", "x", "--strategy", "scope"}), FailsWith(bad, "--lb: 'x'"));
  EXPECT_THAT(Parse({"--lb", "2147483648", "--strategy", "scope"}), FailsWith(bad, "2147483647"));
  EXPECT_THAT(Parse({"--lb", "1.5", "--strategy", "scope"}), FailsWith(bad, "'1.5'"));
  EXPECT_THAT(Parse({"--min-tensor-bytes", "9223372036854775808"}),
              FailsWith(bad, "--min-tensor-bytes"));
  EXPECT_THAT(Parse({"--ctrld-strategy", "fast", "--strategy", "scope"}),
              FailsWith(bad, "chain_rule or direct_order"));
  EXPECT_THAT(Parse({"--already-rewritten", "unspecified"}), FailsWith(bad, "keep or replan"));
  EXPECT_THAT(Parse({"--targets", "a,,b"}), FailsWith(bad, "empty"));
  EXPECT_THAT(Parse({"--feed", "images"}), FailsWith(bad, "--feed: 'images'"));
  EXPECT_THAT(Parse({"--fuse-swapins=maybe", "--strategy", "scope"}), FailsWith(bad, "'maybe'"));
}

TEST(OptionFlagsTest, ASingleValueGivenTwiceIsAConflict) {
  EXPECT_THAT(Parse({"--strategy", "scope", "--lb", "1", "--lb", "2"}),
              FailsWith(v1::ERROR_REASON_CONFLICTING_OPTIONS, "--lb is given 2 times"));
}

TEST(OptionFlagsTest, AnUnknownStrategyListsThoseThatExist) {
  EXPECT_THAT(Parse({"--strategy", "magic"}), FailsWith(v1::ERROR_REASON_UNKNOWN_OPTION, "scope"));
  EXPECT_THAT(Parse({"--strategy", "strip"}),
              FailsWith(v1::ERROR_REASON_UNKNOWN_OPTION, "spillway strip"));
}

// Two strategies, of which one has no flags.
std::vector<StrategyTable> ScopeThenStrip() { return {Strategies().back(), {"strip", "", {}}}; }
std::vector<StrategyTable> StripThenScope() { return {{"strip", "", {}}, Strategies().back()}; }

TEST(OptionFlagsTest, AFlagOfAnotherStrategyIsAConflict) {
  const auto conflict = v1::ERROR_REASON_CONFLICTING_OPTIONS;
  EXPECT_THAT(Parse({"--strategy", "strip", "--lb", "2"}, ScopeThenStrip()),
              FailsWith(conflict, "--lb does not belong to the strategy strip; "));
  // Also if the strategy is the default: no flag is dropped silently.
  EXPECT_THAT(Parse({"--ub", "2"}, StripThenScope()),
              FailsWith(conflict,
                        "--ub does not belong to the strategy strip, the default; leave it out, or "
                        "give --strategy scope"));
  EXPECT_TRUE(Parse({"--ub", "2"}, ScopeThenStrip()).ok());
  EXPECT_TRUE(Parse({"--strategy", "scope", "--ub", "2"}, StripThenScope()).ok());
}

TEST(OptionFlagsTest, FlagsOfTwoStrategiesAreAConflictWhicheverIsChosen) {
  const auto conflict = v1::ERROR_REASON_CONFLICTING_OPTIONS;
  const std::vector<std::string> both = {"--lb", "5", "--swapin-ahead", "3"};
  EXPECT_THAT(Parse(both),
              FailsWith(conflict,
                        "--swapin-ahead does not belong to the strategy budget, the default; "
                        "leave it out, or give --strategy level"));
  for (const auto& [strategy, other] :
       {std::pair<std::string, std::string>{"scope", "--swapin-ahead"}, {"level", "--lb"}}) {
    std::vector<std::string> arguments = {"--strategy", strategy};
    arguments.insert(arguments.end(), both.begin(), both.end());
    EXPECT_THAT(Parse(arguments), FailsWith(conflict, other + " does not belong"));
  }
}

TEST(OptionValueTest, SplitList) {
  EXPECT_THAT(SplitList("a"), ElementsAre("a"));
  EXPECT_THAT(SplitList("a,b"), ElementsAre("a", "b"));
  EXPECT_THAT(SplitList("a\\,b,c"), ElementsAre("a,b", "c"));
  EXPECT_THAT(SplitList(",a,"), ElementsAre("", "a", ""));
  EXPECT_THAT(SplitList("a\\"), ElementsAre("a\\"));
  EXPECT_THAT(SplitList("\\d+\\,"), ElementsAre("\\d+,"));
}

// The feed that `text` stands for; its name is empty if it stands for none.
v1::Feed FeedOf(const std::string& text, FeedSizes sizes = FeedSizes::kFixed) {
  v1::Feed feed;
  return AddFeed("--feed", text, sizes, &feed).ok() ? feed : v1::Feed();
}

TEST(OptionValueTest, FeedsThatAreOne) {
  const v1::Feed shape = FeedOf("images=128,224,224,3");
  EXPECT_EQ(shape.name(), "images");
  EXPECT_THAT(shape.dims(), ElementsAre(128, 224, 224, 3));
  const v1::Feed scalar = FeedOf("rate:0=");
  EXPECT_EQ(scalar.name(), "rate:0");
  EXPECT_EQ(scalar.dims_size(), 0);
  EXPECT_THAT(FeedOf("x=0").dims(), ElementsAre(0));
  const v1::Feed training = FeedOf("is_training:0=:true");
  EXPECT_EQ(training.name(), "is_training:0");
  EXPECT_EQ(training.dims_size(), 0);
  EXPECT_THAT(training.values(), ElementsAre(1));
  EXPECT_THAT(FeedOf("x=:false").values(), ElementsAre(0));
  const v1::Feed phase = FeedOf("keras_learning_phase=true");
  EXPECT_EQ(phase.name(), "keras_learning_phase");
  EXPECT_EQ(phase.dims_size(), 0);
  EXPECT_THAT(phase.values(), ElementsAre(1));
  EXPECT_THAT(FeedOf("x=false", FeedSizes::kMayVary).values(), ElementsAre(0));
  EXPECT_THAT(FeedOf("crop=2:64,-3").dims(), ElementsAre(2));
  EXPECT_THAT(FeedOf("crop=2:64,-3").values(), ElementsAre(64, -3));
  // The range is the core's to judge, so that all callers get one answer.
  EXPECT_EQ(FeedOf("x=2147483648").name(), "x");
  EXPECT_THAT(FeedOf("x=N,224,N,3", FeedSizes::kMayVary).dims(), ElementsAre(-1, 224, -1, 3));
}

TEST(OptionValueTest, FeedsThatAreNone) {
  for (const char* text : {"",
                           "x",
                           "=",
                           "=1",
                           "x=1,-2",
                           "x=a",
                           "x=1,",
                           "x=,1",
                           "x=1,,2",
                           "x=1.5",
                           "x=9223372036854775808",
                           "x=?",
                           "x=1;2",
                           "x=N",
                           "x=:",
                           "x=1:2,",
                           "x=:yes",
                           "x=yes",
                           "x=True",
                           "x=true,false",
                           "x=2,true",
                           "x=:1.5",
                           "x=1:2:3",
                           "x=:9223372036854775808"}) {
    EXPECT_EQ(FeedOf(text).name(), "") << text;
  }
  EXPECT_EQ(FeedOf("x=n", FeedSizes::kMayVary).name(), "");
}

TEST(OptionValueTest, BytesTakeUnits) {
  const auto* field = v1::Hardware::descriptor()->FindFieldByName("gpu_memory_bytes");
  const auto bytes = [field](const char* text) {
    v1::Hardware hardware;
    hardware.set_gpu_memory_bytes(-7);
    const bool ok = SetField("--x", {text}, field, &hardware).ok();
    EXPECT_EQ(ok, hardware.gpu_memory_bytes() != -7) << text;
    return hardware.gpu_memory_bytes();
  };
  EXPECT_EQ(bytes("1536"), 1536);
  EXPECT_EQ(bytes("1.5KiB"), 1536);
  EXPECT_EQ(bytes("12GiB"), 12884901888);
  EXPECT_EQ(bytes("12 GiB"), 12884901888);
  EXPECT_EQ(bytes("1TiB"), 1099511627776);
  EXPECT_EQ(bytes("-1"), -1);  // The range is the core's to judge.
  const auto sizes = size_table::ReadSizes();
  EXPECT_GE(sizes.size(), size_table::kMinSizes);
  for (const auto& [text, size] : sizes) {
    if (text[0] == '-') continue;  // As above.
    EXPECT_EQ(bytes(text.c_str()), size < 0 ? -7 : size) << text;
  }
}

}  // namespace
}  // namespace spillway::cli
