// Lines for the user, on standard error, as the program `spillway run` has them: `spillway: ...`.
// TensorFlow's own log is of no use for them: TF_CPP_MIN_LOG_LEVEL hides it in most jobs.
//
// Thread-safe.
#ifndef SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LOG_H_
#define SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LOG_H_

#include <string>

namespace spillway::tensorflow_plugin {

void Log(const std::string& line);

// The same, unless this process has said it already: a program may have hundreds of functions.
void LogOnce(const std::string& line);

// Says why, and ends the process with exit status 1: TensorFlow takes an error of a graph optimizer
// for a warning, and runs the graph as it was (MetaOptimizer::RunOptimizer in meta_optimizer.cc).
[[noreturn]] void FailClosed(const std::string& line);

}  // namespace spillway::tensorflow_plugin

#endif  // SPILLWAY_CLIENT_LIB_TENSORFLOW_PLUGIN_LOG_H_
