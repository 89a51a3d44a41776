// The same mistake through every door gets the same code, reason and sentence: the core, the C++
// client, the C API, the Python package and the program, each in process and over spillwayd. The
// mistakes are in mistakes.txt.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "rewrite_core/base/error.h"
#include "rewrite_core/graph/canonical_form.h"
#include "rewrite_core/rewriter.h"
#include "spillway/client.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"
#include "spillway/rewrite_message.h"
#include "spillway/spillway.h"
#include "tests/client_lib/child_process.h"
#include "tests/client_lib/temp_dir.h"
#include "tests/client_lib/test_graphs.h"
#include "tests/server/daemon.h"
#include "tests/testing/sanitizers.h"
#include "tests/testing/text_form.h"

namespace spillway::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using json = nlohmann::json;

// Of the server: only the graph `above_a_limit` exceeds it.
constexpr int64_t kMaxNodes = 400;
// Every door that can take it; so few that a mistake cannot hide behind `not`.
constexpr size_t kLeastMistakes = 40;

struct Mistake {
  std::string name, call, code, reason, text;
  int exit_code = -1;
  std::string graph, graph_b;
  std::string options;                        // Protobuf text.
  v1::Plan plan;                              // Of apply.
  int unknown_field = 0;                      // Its number; 0: none.
  std::map<std::string, std::string> not_by;  // Why, by door.
};

// The outcome of a call.
struct Outcome {
  std::string code, reason, sentence;
  bool operator==(const Outcome& other) const {
    return code == other.code && reason == other.reason && sentence == other.sentence;
  }
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.code << " " << outcome.reason << ": " << outcome.sentence;
}

Outcome OutcomeOf(const absl::Status& status) {
  return {absl::StatusCodeToString(status.code()), ErrorInfoOf(status).reason(),
          std::string(status.message())};
}

// ---- The data.

// Lines with those that go on joined to the line above; without comments.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    if (absl::StartsWith(line, "    ") && !lines.empty()) {
      absl::StrAppend(&lines.back(), "\n", absl::StripAsciiWhitespace(line));
    } else {
      lines.emplace_back(absl::StripLeadingAsciiWhitespace(line));
    }
  }
  return lines;
}

std::string Noops(const std::string& count) {
  int64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(count, &number)) << count;
  std::string text;
  for (int64_t i = 0; i < number; ++i) absl::StrAppend(&text, "n", i, " = NoOp()\n");
  return *testing::ParseGraphText(text);
}

// Reads mistakes.txt; errors in it fail the test.
std::vector<Mistake> ReadMistakes() {
  std::vector<Mistake> mistakes;
  std::map<std::string, std::string> graphs;  // Those with a name, serialized.
  const auto graph = [&](const std::string& value) {
    if (graphs.count(value) > 0) return graphs[value];
    const auto parsed = testing::ParseGraphText(value);
    EXPECT_TRUE(parsed.ok()) << value << parsed.status();
    return parsed.value_or("");
  };
  for (const std::string& line : Lines(ReadFile(SPILLWAY_MISTAKES))) {
    const std::string key = line.substr(0, line.find_first_of(" \n"));
    const std::string value = key.size() < line.size() ? line.substr(key.size() + 1) : "";
    if (key == "mistake") {
      mistakes.emplace_back().name = value;
    } else if (mistakes.empty()) {
      const size_t end = value.find('\n');
      EXPECT_EQ(key, "graph") << line;
      graphs[value.substr(0, end)] = graph(value.substr(end + 1));
    } else if (Mistake& now = mistakes.back(); key == "call") {
      now.call = value;
    } else if (key == "graph") {
      now.graph = graph(value);
    } else if (key == "graph_b") {
      now.graph_b = graph(value);
    } else if (key == "bytes") {
      now.graph = absl::HexStringToBytes(value);
    } else if (key == "file") {
      now.graph = ReadFile(absl::StrCat(SPILLWAY_TEST_GRAPHS "/", value));
    } else if (key == "nodes") {
      now.graph = Noops(value);
    } else if (key == "nodes_b") {
      now.graph_b = Noops(value);
    } else if (key == "options") {
      now.options = value;
    } else if (key == "plan") {
      now.plan.set_format_version(1);
      now.plan.set_graph_sha256(*core::CanonicalSha256(now.graph, {}));
      google::protobuf::TextFormat::Parser parser;
      EXPECT_TRUE(parser.MergeFromString(value, &now.plan)) << value;
    } else if (key == "field") {
      EXPECT_TRUE(absl::SimpleAtoi(value, &now.unknown_field)) << value;
    } else if (key == "says") {
      const std::vector<std::string> parts = absl::StrSplit(value, absl::MaxSplits(' ', 3));
      now.code = parts.at(0);
      now.reason = parts.at(1);
      EXPECT_TRUE(absl::SimpleAtoi(parts.at(2), &now.exit_code)) << line;
      now.text = parts.at(3);
    } else if (key == "not") {
      now.not_by.insert(absl::StrSplit(value, absl::MaxSplits(' ', 1)));
    } else {
      ADD_FAILURE() << "mistakes.txt: " << line;
    }
  }
  return mistakes;
}

// ---- The options of a call, as each door wants them.

std::unique_ptr<Message> OptionsOf(const Mistake& mistake) {
  std::unique_ptr<Message> options;
  if (mistake.call == "inspect") {
    options = std::make_unique<v1::InspectOptions>();
  } else if (mistake.call == "simulate") {
    options = std::make_unique<v1::SimulateOptions>();
  } else if (mistake.call == "explore") {
    options = std::make_unique<v1::ExploreOptions>();
  } else {
    options = std::make_unique<v1::RewriteOptions>();
    auto& rewrite = static_cast<v1::RewriteOptions&>(*options);
    if (mistake.call == "strip") rewrite.mutable_strip();
    if (mistake.call == "apply") {
      mistake.plan.SerializeToString(rewrite.mutable_apply()->mutable_plan());
    }
  }
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::Parser* merging = &parser;
  EXPECT_TRUE(merging->MergeFromString(mistake.options, options.get())) << mistake.options;
  if (mistake.unknown_field > 0) {
    options->GetReflection()
        ->MutableUnknownFields(options.get())
        ->AddVarint(mistake.unknown_field, 1);
  }
  return options;
}

template <typename Options>
const Options& As(const Message& options) {
  return dynamic_cast<const Options&>(options);
}

void AddFlag(const Message& message, const FieldDescriptor* field, int index, TempDir* dir,
             std::vector<std::string>* flags);

// The flags for the fields set in `message`, by the rules of client_lib/README.md.
void AddFlags(const Message& message, TempDir* dir, std::vector<std::string>* flags) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->containing_oneof() != nullptr && !field->has_optional_keyword()) {
      flags->insert(flags->end(), {"--strategy", field->name()});
    }
    if (!field->is_repeated()) AddFlag(message, field, -1, dir, flags);
    for (int i = 0; field->is_repeated() && i < message.GetReflection()->FieldSize(message, field);
         ++i) {
      AddFlag(message, field, i, dir, flags);
    }
  }
}

void AddFlag(const Message& message, const FieldDescriptor* field, int index, TempDir* dir,
             std::vector<std::string>* flags) {
  const std::map<std::string, std::string> other_names = {{"feeds", "--feed"},
                                                          {"loop_counts", "--loop-count"},
                                                          {"efficiencies", "--efficiency"},
                                                          {"preset", "--hardware"},
                                                          {"largest_tensor_count", "--top"}};
  const auto other = other_names.find(field->name());
  const std::string flag =
      other != other_names.end()
          ? other->second
          : absl::StrCat("--", absl::StrReplaceAll(field->name(), {{"_", "-"}}));
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const Message& inner = index < 0
                               ? message.GetReflection()->GetMessage(message, field)
                               : message.GetReflection()->GetRepeatedMessage(message, field, index);
    if (const auto* loop = dynamic_cast<const v1::LoopCount*>(&inner)) {
      flags->push_back(absl::StrCat(flag, "=", loop->name(), "=", loop->count()));
    } else if (const auto* kernels = dynamic_cast<const v1::KernelEfficiency*>(&inner)) {
      flags->push_back(absl::StrCat(flag, "=", kernels->kernels(), "=", kernels->efficiency()));
    } else if (const auto* feed = dynamic_cast<const v1::Feed*>(&inner)) {
      flags->push_back(absl::StrCat(
          flag, "=", feed->name(), "=", absl::StrJoin(feed->dims(), ","),
          feed->values().empty() ? "" : absl::StrCat(":", absl::StrJoin(feed->values(), ","))));
    } else {
      AddFlags(inner, dir, flags);
    }
    return;
  }
  std::string value;
  google::protobuf::TextFormat::PrintFieldValueToString(message, field, index, &value);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    std::string plain;
    EXPECT_TRUE(absl::CUnescape(value.substr(1, value.size() - 2), &plain)) << value;
    value = field->type() == FieldDescriptor::TYPE_BYTES ? dir->Write("profile", plain) : plain;
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    // Flags leave out the common prefix of the enum's names.
    const absl::string_view none = field->enum_type()->value(0)->name();
    value = absl::AsciiStrToLower(absl::StripPrefix(value, absl::StripSuffix(none, "UNSPECIFIED")));
  }
  flags->push_back(absl::StrCat(flag, "=", value));
}

// ---- The doors.

// By the call that it names, or as a rewrite with its options.
Outcome Called(const Mistake& mistake, const Client& client) {
  const std::unique_ptr<Message> options = OptionsOf(mistake);
  if (mistake.call == "inspect") {
    return OutcomeOf(client.Inspect(mistake.graph, As<v1::InspectOptions>(*options)).status());
  }
  if (mistake.call == "simulate") {
    return OutcomeOf(client.Simulate(mistake.graph, As<v1::SimulateOptions>(*options)).status());
  }
  if (mistake.call == "explore") {
    return OutcomeOf(client.Explore(mistake.graph, As<v1::ExploreOptions>(*options)).status());
  }
  if (mistake.call == "diff")
    return OutcomeOf(client.Diff(mistake.graph, mistake.graph_b).status());
  return OutcomeOf(client.Rewrite(mistake.graph, As<v1::RewriteOptions>(*options)).status());
}

Outcome ThroughCore(const Mistake& mistake, const v1::Limits& limits) {
  return Called(mistake, Client(MakeLocalConnection(limits)));
}

// As ThroughCore, but by methods that do the same in another way.
Outcome ThroughClient(const Mistake& mistake, const Client& client) {
  if (mistake.call == "inspect") {
    const std::unique_ptr<Message> options = OptionsOf(mistake);
    return OutcomeOf(
        client.InspectTensors(mistake.graph, As<v1::InspectOptions>(*options), nullptr).status());
  }
  if (mistake.call == "strip") return OutcomeOf(client.Strip(mistake.graph).status());
  if (mistake.call == "apply" && mistake.options.empty()) {
    return OutcomeOf(client.Apply(mistake.graph, mistake.plan).status());
  }
  return Called(mistake, client);
}

internal::COwner<spillway_client> NewCClient(const std::string& target) {
  const internal::COwner<spillway_client_options> options(spillway_client_options_new());
  spillway_status_free(spillway_client_options_set_target(options.get(), target.c_str()));
  spillway_client* client = nullptr;
  spillway_status_free(spillway_client_new(options.get(), &client));
  return internal::COwner<spillway_client>(client);
}

Outcome ThroughC(const Mistake& mistake, spillway_client* client) {
  const std::string options = OptionsOf(mistake)->SerializeAsString();
  const std::string& graph = mistake.graph;
  spillway_buffer* out = nullptr;
  spillway_status* made = nullptr;
  if (mistake.call == "inspect") {
    made = spillway_inspect(client, graph.data(), graph.size(), options.data(), options.size(),
                            nullptr, nullptr, nullptr, &out);
  } else if (mistake.call == "simulate") {
    made = spillway_simulate(client, graph.data(), graph.size(), options.data(), options.size(),
                             nullptr, &out);
  } else if (mistake.call == "explore") {
    made = spillway_explore(client, graph.data(), graph.size(), options.data(), options.size(),
                            nullptr, nullptr, nullptr, &out);
  } else if (mistake.call == "diff") {
    made = spillway_diff(client, graph.data(), graph.size(), mistake.graph_b.data(),
                         mistake.graph_b.size(), nullptr, &out);
  } else {
    made = spillway_rewrite_graph(client, graph.data(), graph.size(), options.data(),
                                  options.size(), nullptr, &out, nullptr);
  }
  const internal::COwner<spillway_status> status(made);
  spillway_buffer_free(out);
  return {absl::StatusCodeToString(static_cast<absl::StatusCode>(spillway_status_code(made))),
          spillway_status_reason(made), spillway_status_message(made)};
}

std::string PlanJson(const Mistake& mistake) {
  std::string text;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(mistake.plan, &text).ok());
  return text;
}

// A sentence in the words of the command line, made one in those of the API: the program's sentence
// about an option is the same as every door's, except for its name.
std::string InFields(const std::string& sentence) {
  static const std::map<std::string, std::string> kOthers = {{"--hardware", "preset"},
                                                             {"--top", "largest_tensor_count"},
                                                             {"--feed", "feeds"},
                                                             {"--loop-count", "loop_counts"},
                                                             {"--efficiency", "efficiencies"}};
  std::string out;
  for (size_t i = 0; i < sentence.size();) {
    if (!absl::StartsWith(absl::string_view(sentence).substr(i), "--")) {
      out += sentence[i++];
      continue;
    }
    const size_t end = sentence.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", i);
    const std::string flag = sentence.substr(i, end - i);
    const auto other = kOthers.find(flag);
    out +=
        other != kOthers.end() ? other->second : absl::StrReplaceAll(flag.substr(2), {{"-", "_"}});
    i = std::min(end, sentence.size());
  }
  return absl::StrReplaceAll(out, {{"hardware.", ""}, {" = REPLAN", " replan"}});
}

// The program says the sentence behind the file's name, and the reason in brackets. Its code is not
// said; `code` stands for it where the exit code is the one that it has to be.
Outcome ThroughProgram(const Mistake& mistake, const std::string& server, TempDir* dir) {
  const std::string a = dir->Write("a.pb", mistake.graph);
  const std::string b = dir->Write("b.pb", mistake.graph_b);
  std::vector<std::string> command = {SPILLWAY_BIN_DIR "/spillway", mistake.call};
  if (mistake.call == "apply") command.push_back(dir->Write("plan.json", PlanJson(mistake)));
  command.push_back(a);
  if (mistake.call == "diff") command.push_back(b);
  if (mistake.call == "rewrite" || mistake.call == "apply" || mistake.call == "strip") {
    command.insert(command.end(), {"-o", *dir / "out.pb"});
  }
  command.insert(command.end(), {"--format", "graphdef"});
  if (mistake.call != "diff" && mistake.call != "strip" && mistake.call != "apply") {
    AddFlags(*OptionsOf(mistake), dir, &command);
  }
  if (!server.empty()) command.insert(command.end(), {"--server", server});
  const ChildResult result = RunChild(command);
  EXPECT_EQ(result.exit_code, mistake.exit_code) << absl::StrJoin(command, " ") << "\n"
                                                 << result.err;
  const std::vector<std::string> lines = absl::StrSplit(result.err, '\n', absl::SkipEmpty());
  std::string line = lines.empty() ? "" : lines.back();
  for (const std::string& front : {std::string("spillway: "), a + ": ", b + ": "}) {
    if (absl::StartsWith(line, front)) line.erase(0, front.size());
  }
  const size_t bracket = line.rfind(" [");
  if (bracket == std::string::npos) return {"", "", line};
  return {result.exit_code == mistake.exit_code ? mistake.code : "",
          line.substr(bracket + 2, line.size() - bracket - 3), line.substr(0, bracket)};
}

// All at once: most of a Python process's time is its start.
std::map<std::string, Outcome> ThroughPython(const std::vector<Mistake>& mistakes,
                                             const std::string& server, TempDir* dir) {
  json calls = json::array();
  for (const Mistake& mistake : mistakes) {
    json graphs = {dir->Write(mistake.name + ".pb", mistake.graph)};
    if (mistake.call == "diff") {
      graphs.push_back(dir->Write(mistake.name + "_b.pb", mistake.graph_b));
    }
    json call = {{"name", mistake.name}, {"call", mistake.call}, {"graphs", graphs}};
    if (mistake.call == "apply") call["plan"] = dir->Write(mistake.name, PlanJson(mistake));
    std::string options = "{}";
    if (mistake.call != "diff" && mistake.call != "strip") {
      const std::unique_ptr<Message> message = OptionsOf(mistake);
      if (mistake.call == "apply") static_cast<v1::RewriteOptions&>(*message).clear_apply();
      options.clear();
      google::protobuf::util::JsonPrintOptions how;
      how.preserve_proto_field_names = true;
      EXPECT_TRUE(google::protobuf::util::MessageToJsonString(*message, &options, how).ok());
    }
    call["options"] = json::parse(options);
    calls.push_back(call);
  }
  std::vector<std::string> command = {"/usr/bin/env",
                                      "SPILLWAY_LIBRARY=" SPILLWAY_LIB_DIR "/libspillway.so.0",
                                      "PYTHONPATH=" SPILLWAY_PYTHON_DIR,
                                      "PYTHONDONTWRITEBYTECODE=1",
                                      "python3",
                                      SPILLWAY_MISTAKES_DRIVER,
                                      dir->Write("calls.json", calls.dump())};
  if (!server.empty()) command.push_back(server);
  const ChildResult result = RunChild(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::map<std::string, Outcome> outcomes;
  const json answer = json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return outcomes;
  for (const auto& [name, said] : answer.items()) outcomes[name] = {said[0], said[1], said[2]};
  return outcomes;
}

class MistakesTest : public ::testing::Test {
 protected:
  MistakesTest() : mistakes_(ReadMistakes()) {
    limits_.set_max_node_count(kMaxNodes);
    for (const Mistake& mistake : mistakes_) {
      expected_[mistake.name] = ThroughCore(mistake, limits_);
    }
  }

  // Those that `door` can make, in process or on a server.
  std::vector<Mistake> For(const std::string& door, bool in_process) const {
    std::vector<Mistake> chosen;
    for (const Mistake& mistake : mistakes_) {
      if (mistake.not_by.count(door) > 0) continue;
      if (mistake.not_by.count(in_process ? "process" : "server") > 0) continue;
      chosen.push_back(mistake);
    }
    return chosen;
  }

  // Runs `door(mistake, server)` on those that it can make, in process and on the server.
  template <typename Door>
  void Compare(const std::string& name, const Door& door) {
    for (const std::string& server : {std::string(), daemon_.address()}) {
      for (const Mistake& mistake : For(name, server.empty())) {
        EXPECT_EQ(door(mistake, server), expected_[mistake.name])
            << mistake.name << " by " << name << (server.empty() ? "" : " on a server");
      }
    }
  }

  const std::vector<Mistake> mistakes_;
  v1::Limits limits_ = core::DefaultLimits();
  std::map<std::string, Outcome> expected_;
  TempDir dir_;
  server::Daemon daemon_{{absl::StrCat("--max-node-count=", kMaxNodes)}};
};

TEST_F(MistakesTest, TheCoreSaysWhatIsWrittenDown) {
  EXPECT_GE(mistakes_.size(), kLeastMistakes);
  for (const Mistake& mistake : mistakes_) {
    const Outcome& outcome = expected_[mistake.name];
    EXPECT_EQ(outcome.code, mistake.code) << mistake.name << ": " << outcome;
    EXPECT_EQ(outcome.reason, mistake.reason) << mistake.name << ": " << outcome;
    EXPECT_TRUE(absl::StrContains(outcome.sentence, mistake.text))
        << mistake.name << ": " << outcome;
  }
}

TEST_F(MistakesTest, TheClientInProcessAndOnAServer) {
  RemoteOptions remote;
  Compare("client", [&](const Mistake& mistake, const std::string& server) {
    remote.target = server;
    return ThroughClient(
        mistake, Client(server.empty() ? MakeLocalConnection() : MakeRemoteConnection(remote)));
  });
}

// However a graph goes to the server.
TEST_F(MistakesTest, TheClientByStreams) {
  RemoteOptions remote;
  remote.target = daemon_.address();
  remote.unary_max_bytes = -1;
  const Client client(MakeRemoteConnection(remote));
  for (const Mistake& mistake : For("client", /*in_process=*/false)) {
    EXPECT_EQ(ThroughClient(mistake, client), expected_[mistake.name]) << mistake.name;
  }
}

TEST_F(MistakesTest, TheCApi) {
  Compare("c", [&](const Mistake& mistake, const std::string& server) {
    return ThroughC(mistake, NewCClient(server).get());
  });
}

TEST_F(MistakesTest, TheProgram) {
  // Words in front of a value in the API, which must not be shown to users of flags.
  static const std::regex field("(^|[^'\"/a-z_])(hardware\\.)?[a-z]+(_[a-z]+)+ is ");
  for (auto& [name, outcome] : expected_) outcome.sentence = InFields(outcome.sentence);
  Compare("program", [&](const Mistake& mistake, const std::string& server) {
    Outcome outcome = ThroughProgram(mistake, server, &dir_);
    EXPECT_FALSE(std::regex_search(outcome.sentence, field)) << outcome.sentence;
    outcome.sentence = InFields(outcome.sentence);
    return outcome;
  });
}

TEST_F(MistakesTest, ThePythonPackage) {
  if (kAddressSanitizer) GTEST_SKIP() << "Python is not linked with the sanitizer";
  for (const bool in_process : {true, false}) {
    const std::vector<Mistake> mistakes = For("python", in_process);
    std::map<std::string, Outcome> outcomes =
        ThroughPython(mistakes, in_process ? "" : daemon_.address(), &dir_);
    for (const Mistake& mistake : mistakes) {
      EXPECT_EQ(outcomes[mistake.name], expected_[mistake.name])
          << mistake.name << (in_process ? "" : " on a server");
    }
  }
}

}  // namespace
}  // namespace spillway::testing
