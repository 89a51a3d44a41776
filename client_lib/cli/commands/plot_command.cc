#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client_lib/cli/commands/add_commands.h"
#include "client_lib/cli/commands/per_graph.h"
#include "client_lib/cli/commands/plot_graph.h"
#include "client_lib/cli/commands/plot_report.h"
#include "client_lib/cli/files/picture_file.h"
#include "client_lib/cli/flags/connection_flags.h"
#include "client_lib/cli/flags/execution_flag.h"
#include "client_lib/cli/flags/field_flag.h"
#include "client_lib/cli/flags/file_flags.h"
#include "client_lib/cli/flags/machine.h"
#include "client_lib/cli/flags/option_table.h"
#include "client_lib/cli/flags/size_list.h"
#include "client_lib/cli/flags/step_flags.h"
#include "client_lib/cli/print/progress_line.h"
#include "client_lib/cli/rewrite/stored_profile.h"
#include "client_lib/plot/picture.h"
#include "client_lib/text/machine_text.h"
#include "rewrite_core/base/error.h"
#include "rewrite_core/base/steady_time.h"

namespace spillway::cli {
namespace {

constexpr char kPlotSizes[] = "--sizes";
constexpr char kThroughput[] = "--throughput";
constexpr char kRecompute[] = "--recompute";
constexpr char kWhatToDraw[] = "What to draw";

struct PlotFlags {
  explicit PlotFlags(CLI::App* command)
      : step(command), connection(command, ConnectionFlags::Kind::kCall) {
    AddStoredProfileFlag(command, &without_stored_profile);
  }

  InputPath input;
  InputPath after;
  OutputPath output;
  std::string form;
  std::string theme = "auto";
  std::string title;
  std::vector<std::string> sizes;
  absl::optional<format::GraphFormat> format;
  bool no_plan = false;
  const CLI::Option* recompute = nullptr;
  bool throughput = false;
  bool without_stored_profile = false;
  const CLI::Option* execution = nullptr;
  const StepFlags step;
  const ConnectionFlags connection;
};

// Of the plan, if one is made.
OptionRow RecomputeRow() { return RowOf(v1::BudgetStrategy::descriptor(), "recompute"); }

absl::Status PlotConflict(absl::string_view message, absl::string_view flag) {
  return core::InvalidError(v1::ERROR_REASON_CONFLICTING_OPTIONS, message, {{"flag", flag}});
}

absl::Status CheckPlotFlags(const PlotFlags& flags, PictureForm form) {
  if (flags.throughput && !flags.after.name().empty()) {
    return PlotConflict("--throughput draws one graph; leave GRAPH2 out", kThroughput);
  }
  if (!flags.throughput && !flags.sizes.empty()) {
    return PlotConflict("--sizes needs --throughput; add that, or leave it out", kPlotSizes);
  }
  const bool makes_plan = !flags.no_plan && !flags.step.no_budget() && flags.after.name().empty();
  if (flags.recompute->count() > 0 && !makes_plan) {
    return PlotConflict(
        "--recompute is for a plan that is made here; leave it out, or --no-plan, "
        "--no-budget and GRAPH2",
        kRecompute);
  }
  if (flags.input.is_standard_input() && flags.after.is_standard_input()) {
    return PlotConflict("GRAPH and GRAPH2 are both standard input; give one of them as a file",
                        "GRAPH2");
  }
  for (const InputPath& input : {flags.input, flags.after}) {
    if (input.name().empty()) continue;
    if (absl::Status s = CheckOutputs(input, {flags.output}); !s.ok()) return s;
  }
  if (form != PictureForm::kPng) return absl::OkStatus();
  if (absl::Status s = CheckPng(); !s.ok()) return s;
  return CheckNotBinaryOnTerminal(flags.output, "picture");
}

plot::Theme ThemeOf(const PlotFlags& flags, PictureForm form) {
  if (flags.theme == "dark") return plot::Theme::kDark;
  // A PNG cannot adapt to the viewer's color scheme.
  return flags.theme == "light" || form == PictureForm::kPng ? plot::Theme::kLight
                                                             : plot::Theme::kAuto;
}

std::string TitleOf(const PlotFlags& flags, absl::string_view what) {
  if (!flags.title.empty()) return flags.title;
  const InputPath& drawn = flags.after.name().empty() ? flags.input : flags.after;
  const std::string name = std::filesystem::path(drawn.name()).filename().string();
  return name.empty() || drawn.is_standard_input() ? "" : absl::StrCat(name, ": ", what);
}

// A file, read as a graph or as a report.
struct PlotInput {
  InputPath from;
  absl::optional<PlotReport> report;
  absl::optional<format::GraphFile> file;
};

absl::StatusOr<PlotInput> ReadPlotInput(const InputPath& from, const PlotFlags& flags,
                                        const Session& session) {
  PlotInput input;
  input.from = from;
  absl::StatusOr<std::string> bytes =
      ReadInput(from, session.cancellation, FileKind::kGraphOrReport);
  if (!bytes.ok()) return bytes.status();
  if (IsJson(*bytes)) {
    auto report = ReadReport(*bytes, from.name());
    if (!report.ok()) return report.status();
    input.report = *std::move(report);
    return input;
  }
  auto file = format::GraphFile::Read(*std::move(bytes), flags.format);
  if (!file.ok()) return WithInputName(file.status(), from);
  input.file = *std::move(file);
  return input;
}

// Draws the requested picture; the caller owns the progress line.
class Plotter {
 public:
  Plotter(const PlotFlags& flags, PictureForm form, v1::SimulateOptions options,
          v1::Recompute recompute, Client client, CallOptions call)
      : flags_(flags),
        options_(std::move(options)),
        recompute_(recompute),
        client_(std::move(client)),
        call_(std::move(call)),
        deadline_(core::SteadyNow() + call_.timeout) {
    picture_.format = form == PictureForm::kHtml ? plot::Format::kHtml : plot::Format::kSvg;
    picture_.theme = ThemeOf(flags, form);
  }

  absl::StatusOr<std::string> Draw(const PlotInput& input, const PlotInput* after) {
    const auto* exploration =
        input.report ? absl::get_if<v1::ExploreReport>(&*input.report) : nullptr;
    if (exploration != nullptr) {
      if (after != nullptr) {
        return PlotConflict(absl::StrCat(core::Quoted(input.from.name()),
                                         " is a report of explore, which is drawn alone; leave "
                                         "GRAPH2 out"),
                            "GRAPH2");
      }
      return DrawRates(*exploration);
    }
    if (flags_.throughput) return Explore(input);
    if (after != nullptr) return DrawTwo(input, *after);
    if (input.report) return DrawOne({absl::get<v1::SimulateReport>(*input.report), {}, {}});
    DrawnStep drawn;
    absl::Status s = OfGraph(input, [&](absl::string_view graph) {
      auto simulated = SimulateToDraw(
          graph, OptionsFor(graph, input),
          flags_.no_plan || options_.no_budget() ? Comparison::kNone : Comparison::kPlan,
          recompute_, client_, Until(deadline_, call_));
      if (simulated.ok()) drawn = *std::move(simulated);
      assumed_ = text::AssumedText(drawn.step.hardware());
      return simulated.status();
    });
    if (!s.ok()) return s;
    return DrawOne(drawn);
  }

  // The warning if a graph was drawn for an assumed machine; otherwise empty.
  const std::string& assumed() const { return assumed_; }

 private:
  // Calls `use` with the graph of a file; prefixes errors with the file's name.
  template <typename Use>
  absl::Status OfGraph(const PlotInput& input, const Use& use) {
    if (input.file->num_graphs() > 1) {
      picture_.notes.push_back(absl::StrCat(core::Quoted(input.from.name()), " has ",
                                            input.file->num_graphs(), " graphs; this is of ",
                                            input.file->NameOf(0)));
    }
    const absl::Status status = use(input.file->graph(0));
    return status.ok() ? status : WithInputName(input.file->WithName(0, status), input.from);
  }

  // With the profile beside the file, if any, as in `simulate`.
  v1::SimulateOptions OptionsFor(absl::string_view graph, const PlotInput& input) const {
    v1::SimulateOptions options = options_;
    if (!flags_.without_stored_profile) {
      PrintNote(StoredProfiles::Beside(input.from).AddTo(graph, options.mutable_step()));
    }
    return options;
  }

  absl::StatusOr<v1::SimulateReport> StepOf(const PlotInput& input) {
    if (input.report) {
      if (const auto* step = absl::get_if<v1::SimulateReport>(&*input.report)) return *step;
      return PlotConflict(absl::StrCat(core::Quoted(input.from.name()),
                                       " is a report of explore; give one of simulate"),
                          "GRAPH2");
    }
    v1::SimulateReport report;
    absl::Status s = OfGraph(input, [&](absl::string_view graph) {
      auto simulated = client_.Simulate(graph, OptionsFor(graph, input), Until(deadline_, call_));
      if (simulated.ok()) report = *std::move(simulated);
      assumed_ = text::AssumedText(report.hardware());
      return simulated.status();
    });
    if (!s.ok()) return s;
    return report;
  }

  absl::StatusOr<std::string> DrawTwo(const PlotInput& before, const PlotInput& after) {
    DrawnStep drawn;
    auto step = StepOf(after);
    if (!step.ok()) return step.status();
    drawn.step = *std::move(step);
    auto first = StepOf(before);
    if (!first.ok()) return first.status();
    drawn.before = *std::move(first);
    return DrawOne(drawn);
  }

  absl::StatusOr<std::string> DrawOne(const DrawnStep& drawn) {
    picture_.title = TitleOf(flags_, drawn.before ? "memory of a training step, before and after"
                                                  : "memory of a training step");
    picture_.notes.insert(picture_.notes.end(), drawn.notes.begin(), drawn.notes.end());
    return plot::DrawStep(drawn.step, drawn.before ? &*drawn.before : nullptr, picture_);
  }

  absl::StatusOr<std::string> Explore(const PlotInput& input) {
    if (input.report) {
      return PlotConflict(absl::StrCat(core::Quoted(input.from.name()),
                                       " is a report of a step; give a graph, or a report of "
                                       "explore"),
                          kThroughput);
    }
    v1::ExploreOptions options;
    *options.mutable_step() = options_.step();
    options.set_no_budget(options_.no_budget());
    options.set_swapping(!flags_.no_plan && !options_.no_budget());
    options.set_recompute(recompute_);
    if (absl::Status s = AddSizeLists(kPlotSizes, flags_.sizes, &options); !s.ok()) return s;
    v1::ExploreReport report;
    absl::Status s = OfGraph(input, [&](absl::string_view graph) {
      auto explored = client_.Explore(
          graph, options,
          [](const v1::ExploredSize& size) {
            ShowProgress(absl::StrCat("exploring: size ", size.size()));
          },
          Until(deadline_, call_));
      if (explored.ok()) report = *std::move(explored);
      assumed_ = text::AssumedText(report.hardware());
      return explored.status();
    });
    if (!s.ok()) return s;
    return DrawRates(report);
  }

  absl::StatusOr<std::string> DrawRates(const v1::ExploreReport& report) {
    picture_.title =
        TitleOf(flags_, report.size_is_batch() ? "throughput against batch" : "speed against size");
    return plot::DrawThroughput(report, picture_);
  }

  const PlotFlags& flags_;
  const v1::SimulateOptions options_;
  const v1::Recompute recompute_;
  const Client client_;
  const CallOptions call_;
  const absl::Time deadline_;
  plot::PictureOptions picture_;
  std::string assumed_;
};

absl::StatusOr<ExitCode> Run(const PlotFlags& flags, const Session& session) {
  const auto form = PictureFormOf(flags.output.name(), flags.form);
  if (!form.ok()) return form.status();
  if (absl::Status s = CheckPlotFlags(flags, *form); !s.ok()) return s;
  v1::SimulateOptions options;
  absl::StatusOr<v1::Step> step =
      flags.step.Build(flags.throughput ? FeedSizes::kMayVary : FeedSizes::kFixed);
  if (!step.ok()) return step.status();
  *options.mutable_step() = *std::move(step);
  options.set_no_budget(flags.step.no_budget());
  options.set_memory(true);
  options.set_trace(true);
  // Launched ahead, a step without swaps takes and frees all of its memory within the launch: its
  // line would be a spike at the left edge.
  options.set_execution(v1::EXECUTION_SYNCHRONOUS);
  if (absl::Status s = SetExecution(flags.execution, &options); !s.ok()) return s;
  v1::BudgetStrategy plan;
  if (absl::Status s = SetFromFlag(RecomputeRow(), flags.recompute, &plan); !s.ok()) return s;
  absl::StatusOr<CallOptions> call = flags.connection.MakeCall(session);
  if (!call.ok()) return call.status();
  const auto input = ReadPlotInput(flags.input, flags, session);
  if (!input.ok()) return input.status();
  absl::optional<PlotInput> after;
  if (!flags.after.name().empty()) {
    auto read = ReadPlotInput(flags.after, flags, session);
    if (!read.ok()) return read.status();
    after = *std::move(read);
  }
  if (input->report && flags.recompute->count() > 0) {
    return PlotConflict(absl::StrCat("--recompute is for a plan that is made here, and ",
                                     core::Quoted(input->from.name()),
                                     " is a report; leave it out, or give a graph"),
                        kRecompute);
  }
  if (input->file) {
    const auto filled = FillHardware(kNvidiaSmiTime, &options);
    if (!filled.ok()) return filled.status();
    PrintNote(*filled);
  }
  const auto output = CreateOutputs({flags.output}, session.cancellation);
  if (!output.ok()) return output.status();
  ProgressLine progress(Verbosity::kNormal, "simulating");
  call->on_progress = progress.callback();
  Plotter plotter(flags, *form, std::move(options), plan.recompute(), flags.connection.Connect(),
                  *call);
  absl::StatusOr<std::string> picture = plotter.Draw(*input, after ? &*after : nullptr);
  progress.End();
  if (picture.ok() && *form == PictureForm::kPng) picture = SvgToPng(*picture);
  if (!picture.ok()) return picture.status();
  PrintNote(plotter.assumed());
  if (absl::Status s = WriteOutputs(*output, {*std::move(picture)}); !s.ok()) return s;
  return ExitCode::kDone;
}

}  // namespace

void AddPlotCommand(CLI::App* app, Session* session) {
  CLI::App* command = app->add_subcommand(
      "plot",
      "Draws the memory of a training step before and after a rewrite. Shows the budget, "
      "resident memory, the tensors live at the peak, the swaps, and each engine's activity; or "
      "instead, throughput against batch size. Writes SVG, an HTML page that describes the element "
      "under the pointer, or PNG.");
  auto flags = std::make_shared<PlotFlags>(command);
  AddGraphArgument(command, "GRAPH",
                   absl::StrCat("The graph, or a report of simulate --trace --json, inspect "
                                "--memory --json or explore --json. A graph is ",
                                kGraphFileHelp),
                   &flags->input)
      ->required();
  AddGraphArgument(command, "GRAPH2",
                   "The graph, or the report, after a rewrite of GRAPH. Without it, a rewritten "
                   "GRAPH is compared with the original, and any other with a rewrite of it.",
                   &flags->after);
  AddFormatFlag(command, &flags->format);
  constexpr char kToWrite[] = "What to write";
  AddOutputFlag(command, "-o,--output", "The file for the picture. - is standard output.",
                &flags->output)
      ->required();
  command
      ->add_option("--as", flags->form,
                   "The format of the picture. PNG needs rsvg-convert (Debian: librsvg2-bin). "
                   "[default: by the ending of FILE]")
      ->check(CLI::IsMember({"svg", "html", "png"}))
      ->type_name("svg|html|png")
      ->group(kToWrite);
  command
      ->add_option("--theme", flags->theme,
                   "The colors. light: dark on light. dark: light on dark. auto: as the viewer "
                   "prefers. [default: auto; for PNG light]")
      ->check(CLI::IsMember({"auto", "light", "dark"}))
      ->type_name("auto|light|dark")
      ->group(kToWrite);
  command
      ->add_option("--title", flags->title, "The title of the picture. [default: the file's name]")
      ->type_name("TEXT")
      ->group(kToWrite);
  command
      ->add_flag("--no-plan", flags->no_plan,
                 "Draws the graph alone, without planning a rewrite to compare it with.")
      ->group(kWhatToDraw);
  flags->recompute = AddFieldFlag(command, RecomputeRow(), kWhatToDraw);
  CLI::Option* execution = AddExecutionFlag(command, kWhatToDraw);
  // The default differs from the field's.
  execution->description(
      "How the step that is drawn runs. synchronous: memory is taken when an operation "
      "runs. launched_ahead: as TensorFlow does it: memory is taken when a kernel is launched, "
      "which may be long before it runs. Reports are drawn as they are. [default: synchronous]");
  flags->execution = execution;
  command
      ->add_flag(
          kThroughput, flags->throughput,
          "Draws throughput against size, as found by explore: without swapping, with it, and "
          "the bound that no plan of swaps can exceed.")
      ->group(kWhatToDraw);
  command
      ->add_option(
          kPlotSizes, flags->sizes,
          "With --throughput, the sizes to try, as in explore. [default: powers of two up to "
          "the first that does not fit]")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("N,N:N,...")
      ->group(kWhatToDraw);
  command->footer(
      "Examples:\n"
      "  spillway plot graph.pb -o memory.html --batch-size 128 --hardware v100_nvlink2\n"
      "  spillway plot graph.pb out.pb -o memory.svg\n"
      "  spillway plot graph.pb --throughput --hardware t4 -o throughput.png\n"
      "  spillway explore graph.pb --swapping --json > sizes.json && \\\n"
      "      spillway plot sizes.json -o throughput.svg");
  command->final_callback(
      [flags, session] { session->run = [flags, session] { return Run(*flags, *session); }; });
}

}  // namespace spillway::cli
