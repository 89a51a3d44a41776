// Prints lines for the user on standard error, like `spillway run`: `spillway: ...`. TensorFlow's
// own log is not used, since TF_CPP_MIN_LOG_LEVEL hides it in most jobs.
//
// Thread-safe.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LOG_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LOG_H_

#include <string>

namespace spillway::tensorflow_plugin {

void Log(const std::string& line);

// The same, unless this process has already printed the line: a program may have hundreds of
// functions.
void LogOnce(const std::string& line);

// Prints the reason and ends the process with exit status 1: TensorFlow treats an error of a graph
// optimizer as a warning and runs the original graph (MetaOptimizer::RunOptimizer in
// meta_optimizer.cc).
[[noreturn]] void FailClosed(const std::string& line);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LOG_H_
