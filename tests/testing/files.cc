#include "tests/testing/files.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace spillway::testing {
namespace {

[[noreturn]] void CannotRead(const std::string& path) {
  std::cerr << "cannot read " << path << "\n";
  std::abort();
}

std::string Unzip(const std::string& path, const std::string& zipped) {
  google::protobuf::io::ArrayInputStream array(zipped.data(), static_cast<int>(zipped.size()));
  google::protobuf::io::GzipInputStream stream(&array, google::protobuf::io::GzipInputStream::GZIP);
  std::string bytes;
  const void* data;
  int size;
  while (stream.Next(&data, &size)) bytes.append(static_cast<const char*>(data), size);
  // At a complete end zlib reports "stream end" (1); a truncated file ends with less.
  if (stream.ZlibErrorCode() != 1) CannotRead(path);
  return bytes;
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) CannotRead(path);
  return bytes.str();
}

std::string ReadTestGraph(absl::string_view name) {
  const std::string path = absl::StrCat(SPILLWAY_TEST_GRAPHS, "/", name);
  if (std::ifstream(path)) return ReadFile(path);
  const std::string zipped = absl::StrCat(path, ".gz");
  return Unzip(zipped, ReadFile(zipped));
}

}  // namespace spillway::testing
