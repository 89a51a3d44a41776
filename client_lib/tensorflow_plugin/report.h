// What is told of a plan: one line, and a file.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_

#include <string>

namespace spillway::tensorflow_plugin {

struct PlanSummary {
  bool rewritten = false;
  std::string line;  // What was done and what it costs.
};

// Of a spillway.v1.RewriteReport as JSON. `graph`: the graph's name for people.
PlanSummary Summarize(const std::string& graph, const std::string& report_json);

// Writes the report into `folder`, which is made if there is none, as PROCESS-N-NAME.json, N
// counting the reports of the process. Returns the path; "" if it cannot be written, and then
// `*problem` says why. The file appears whole or not at all.
std::string WriteReport(const std::string& folder, const std::string& name,
                        const std::string& report_json, std::string* problem);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_
