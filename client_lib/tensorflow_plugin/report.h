// The report of a plan: one line, and a file.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_

#include <string>

namespace spillway::tensorflow_plugin {

struct PlanSummary {
  bool rewritten = false;
  std::string line;  // The outcome and its cost.
};

// Summarizes a spillway.v1.RewriteReport in JSON. `graph`: the graph's name for people.
PlanSummary Summarize(const std::string& graph, const std::string& report_json);

// Writes the report to PROCESS-N-NAME.json in `folder`, creating the folder if necessary; N counts
// the reports of the process. Returns the path, or "" on failure, with the reason in `*problem`.
// The file appears whole or not at all.
std::string WriteReport(const std::string& folder, const std::string& name,
                        const std::string& report_json, std::string* problem);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_
