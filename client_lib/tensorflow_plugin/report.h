// The report of a plan as a file.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_

#include <string>

namespace spillway::tensorflow_plugin {

// Writes the report to PROCESS-N-NAME.json in `folder`, creating the folder if necessary; N counts
// the reports of the process. Returns the path, or "" on failure, with the reason in `*problem`.
// The file appears whole or not at all.
std::string WriteReport(const std::string& folder, const std::string& name,
                        const std::string& report_json, std::string* problem);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_REPORT_H_
