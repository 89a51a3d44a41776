// Calls of Inspect, Simulate, Explore and Diff for tests.
#ifndef SPILLWAY_TESTS_SERVER_CALLS_QUESTION_CLIENT_H_
#define SPILLWAY_TESTS_SERVER_CALLS_QUESTION_CLIENT_H_

#include <string>
#include <vector>

#include "tests/server/test_client.h"

namespace spillway::server {

// A graph, and its announcement: its real size and digest.
inline v1::GraphHeader Announce(const std::string& graph) {
  v1::GraphHeader header;
  header.set_total_size_bytes(graph.size());
  header.set_sha256(DigestOf(graph));
  return header;
}

// The header of a question about one graph.
template <typename Request, typename Options>
Request Question(const Options& options, const std::string& graph) {
  Request message;
  *message.mutable_header()->mutable_options() = options;
  *message.mutable_header()->mutable_graph() = Announce(graph);
  return message;
}

// The header of a Diff.
inline v1::DiffRequest DiffQuestion(const std::string& a, const std::string& b) {
  v1::DiffRequest message;
  *message.mutable_header()->mutable_graph_a() = Announce(a);
  *message.mutable_header()->mutable_graph_b() = Announce(b);
  return message;
}

template <typename Request>
Request Chunk(absl::string_view bytes) {
  Request message;
  message.set_chunk(bytes.data(), bytes.size());
  return message;
}

// `header`, then `graphs` in chunks of `chunk_bytes`, each graph in its own.
template <typename Request>
std::vector<Request> Upload(const Request& header, const std::vector<std::string>& graphs,
                            size_t chunk_bytes = 10'000) {
  std::vector<Request> messages = {header};
  for (const std::string& graph : graphs) {
    for (size_t at = 0; at < graph.size(); at += chunk_bytes) {
      messages.push_back(Chunk<Request>(absl::string_view(graph).substr(at, chunk_bytes)));
    }
  }
  return messages;
}

// All of an answer, and how the call ended.
template <typename Response>
struct Answers {
  grpc::Status status;
  std::vector<Response> messages;
};

// Sends and half-closes; a server that has answered already ends it early.
template <typename Stream, typename Request>
void SendAll(Stream& stream, const std::vector<Request>& messages) {
  for (const Request& message : messages) {
    if (!stream.Write(message)) break;
  }
  stream.WritesDone();
}

template <typename Request, typename Response>
Answers<Response> ReadAll(grpc::ClientReaderWriter<Request, Response>& stream) {
  Answers<Response> answers;
  Response message;
  while (stream.Read(&message)) answers.messages.push_back(message);
  answers.status = stream.Finish();
  return answers;
}

inline Answers<v1::InspectResponse> Inspect(TestClient& client,
                                            const std::vector<v1::InspectRequest>& messages) {
  grpc::ClientContext context;
  const auto stream = client.stub().Inspect(&context);
  SendAll(*stream, messages);
  return ReadAll(*stream);
}

inline Answers<v1::ExploreResponse> Explore(TestClient& client,
                                            const std::vector<v1::ExploreRequest>& messages) {
  grpc::ClientContext context;
  const auto stream = client.stub().Explore(&context);
  SendAll(*stream, messages);
  return ReadAll(*stream);
}

inline grpc::Status Simulate(TestClient& client, const std::vector<v1::SimulateRequest>& messages,
                             v1::SimulateResponse* response) {
  grpc::ClientContext context;
  const auto stream = client.stub().Simulate(&context, response);
  SendAll(*stream, messages);
  return stream->Finish();
}

inline grpc::Status Diff(TestClient& client, const std::vector<v1::DiffRequest>& messages,
                         v1::DiffResponse* response) {
  grpc::ClientContext context;
  const auto stream = client.stub().Diff(&context, response);
  SendAll(*stream, messages);
  return stream->Finish();
}

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_CALLS_QUESTION_CLIENT_H_
