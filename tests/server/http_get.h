// A plain HTTP GET on loopback, and a look at one sample of a Prometheus scrape.
#ifndef SPILLWAY_TESTS_SERVER_HTTP_GET_H_
#define SPILLWAY_TESTS_SERVER_HTTP_GET_H_

#include <string>

namespace spillway::server {

// The body of http://127.0.0.1:PORT PATH; empty unless the answer is 200.
std::string HttpGet(int port, const std::string& path);

// The value of the sample whose line starts with `series`, name and labels as they are exposed
// (labels in alphabetical order); -1 without one.
double Sample(const std::string& scrape, const std::string& series);

}  // namespace spillway::server

#endif  // SPILLWAY_TESTS_SERVER_HTTP_GET_H_
