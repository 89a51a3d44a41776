#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/field_flag.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/flags/option_value.h"
#include "client_lib/cli/flags/size_list.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/json.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/text/explore_text.h"
#include "client_lib/text/text_table.h"
#include "rewrite_core/base/error.h"

namespace spillway::cli {
namespace {

constexpr char kSizes[] = "--sizes";

struct ExploreFlags {
  // A profile applies to a single size.
  explicit ExploreFlags(CLI::App* command)
      : step(command, /*without=*/"profile"), connection(command, ConnectionFlags::Kind::kCall) {}

  InputPath input;
  absl::optional<format::GraphFormat> format;
  const StepFlags step;
  const ConnectionFlags connection;
  std::vector<std::string> sizes;
  // Of fields of ExploreOptions.
  std::vector<std::pair<OptionRow, const CLI::Option*>> options;
  bool json = false;
};

absl::StatusOr<v1::ExploreOptions> OptionsOf(const ExploreFlags& flags) {
  v1::ExploreOptions options;
  absl::StatusOr<v1::Step> step = flags.step.Build(FeedSizes::kMayVary);
  if (!step.ok()) return step.status();
  *options.mutable_step() = *std::move(step);
  options.set_no_budget(flags.step.no_budget());
  if (absl::Status s = AddSizeLists(kSizes, flags.sizes, &options); !s.ok()) return s;
  for (const auto& [row, option] : flags.options) {
    if (absl::Status s = SetFromFlag(row, option, &options); !s.ok()) return s;
  }
  return options;
}

// Whether the size is the number of examples in a batch (ExploreReport.size_is_batch): for rows
// without a report.
bool SizeIsBatch(const v1::Step& step) {
  for (const v1::Feed& feed : step.feeds()) {
    for (int i = 1; i < feed.dims_size(); ++i) {
      if (feed.dims(i) == -1) return false;
    }
  }
  return true;
}

// The state of the search so far.
class SizesSoFar {
 public:
  void Add(const v1::ExploredSize& size) {
    const bool fits = size.has_swapped() || size.unswapped().fit() != v1::FIT_DOES_NOT_FIT;
    sizes_.push_back(size);
    if (fits) fits_ = std::max(fits_, size.size());
    if (!fits && (fits_not_ == 0 || size.size() < fits_not_)) fits_not_ = size.size();
  }

  const std::vector<v1::ExploredSize>& sizes() const { return sizes_; }

  // `12 sizes tried, 96 fits, 128 does not`.
  std::string Text() const {
    return absl::StrCat(text::FormatCount(sizes_.size(), "size"), " tried",
                        fits_ > 0 ? absl::StrCat(", ", fits_, " fits") : "",
                        fits_not_ > 0 ? absl::StrCat(", ", fits_not_, " does not") : "");
  }

 private:
  std::vector<v1::ExploredSize> sizes_;
  int64_t fits_ = 0, fits_not_ = 0;  // The largest and the smallest; 0: none.
};

absl::Status Explore(const v1::ExploreOptions& options, absl::string_view graph,
                     const Client& client, const CallOptions& call, text::Style style,
                     std::ostream& out) {
  SizesSoFar so_far;
  const auto report = client.Explore(
      graph, options,
      [&](const v1::ExploredSize& size) {
        so_far.Add(size);
        ShowProgress(absl::StrCat("exploring: ", so_far.Text()));
      },
      call);
  if (!report.ok()) {
    const bool stopped =
        absl::IsDeadlineExceeded(report.status()) || absl::IsCancelled(report.status());
    if (!stopped || so_far.sizes().empty()) return report.status();
    PrintBesideProgress([&] {
      out << text::FormatSizes(so_far.sizes(), SizeIsBatch(options.step()), style) << std::flush;
    });
    return core::WithMoreText(report.status(), absl::StrCat("; so far: ", so_far.Text()));
  }
  const text::RecomputeChoice recompute = text::ChoiceOf(options.recompute());
  PrintBesideProgress(
      [&] { out << text::FormatExploration(*report, style, recompute) << std::flush; });
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Run(const ExploreFlags& flags, const Session& session) {
  absl::StatusOr<v1::ExploreOptions> options = OptionsOf(flags);
  if (!options.ok()) return options.status();
  const auto filled = FillHardware(kNvidiaSmiTime, &*options);
  if (!filled.ok()) return filled.status();
  PrintNote(*filled);
  const PerGraphRun run{flags.input,
                        flags.format,
                        flags.json,
                        "exploration",
                        "exploring",
                        /*as_it_arrives=*/true,
                        flags.connection,
                        /*beside_progress=*/true};
  return PrintPerGraph(run, session,
                       [&](absl::string_view graph, const Client& client, const CallOptions& call,
                           text::Style style, std::ostream& out) {
                         if (!flags.json) {
                           return Explore(*options, graph, client, call, style, out);
                         }
                         const auto report = client.Explore(graph, *options, nullptr, call);
                         if (!report.ok()) return report.status();
                         out << ToJson(*report);
                         return absl::OkStatus();
                       });
}

}  // namespace

void AddExploreCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "explore",
      "Tries batch or image sizes for a graph that leaves them open. Prints for each size whether "
      "it fits into the GPU's memory without swapping, and the predicted throughput, by size; then "
      "the largest size that fits, the fastest, and the largest with 95% of full speed. With "
      "--swapping, also whether it fits with swapping, the share of full speed that remains, and "
      "the share that no plan of swaps can exceed (bound).");
  auto flags = std::make_shared<ExploreFlags>(command);
  AddGraphArgument(command, "GRAPH", absl::StrCat("The graph: ", kGraphFileHelp), &flags->input)
      ->required();
  AddFormatFlag(command, &flags->format);
  constexpr char kGroup[] = "Sizes";
  command
      ->add_option(kSizes, flags->sizes,
                   "The sizes to try, beside those of the search for the largest that fits: "
                   "numbers and ranges, FROM:TO or FROM:TO:STEP, at most 10,000 sizes. More than "
                   "16 are tried coarsely first, then in between, so that an interrupted "
                   "search covers the whole range, too. With --no-budget, only these are tried. "
                   "[default: powers of two up to the first that does not fit]")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("N,N:N,...")
      ->group(kGroup);
  for (const char* field : {"multiple_of", "swapping", "recompute"}) {
    const OptionRow row = RowOf(v1::ExploreOptions::descriptor(), field);
    flags->options.emplace_back(row, AddFieldFlag(command, row, kGroup));
  }
  command->add_flag("--json", flags->json, "Prints JSON: ExploreReport in simulate.proto.")
      ->group("What to write");
  command->footer(
      "The size that varies is N in --feed. Without any N, it is the batch size: the\n"
      "unknown first dimension of placeholders, iterators and queues.\n"
      "\n"
      "Examples:\n"
      "  spillway explore graph.pb --hardware v100_nvlink2\n"
      "  spillway explore graph.pb --swapping --multiple-of 8 --server host:7070 --timeout 10m\n"
      "  spillway explore graph.pb --feed images=N,224,224,3 --feed labels=N --sizes 32:512:32\n"
      "  spillway explore graph.pb --feed images=8,N,N,3 --sizes 224:2240:224 --multiple-of 32");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
