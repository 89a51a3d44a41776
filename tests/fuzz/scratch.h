// A folder for data read as files, gone with the process.
#ifndef SPILLWAY_TESTS_FUZZ_SCRATCH_H_
#define SPILLWAY_TESTS_FUZZ_SCRATCH_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace spillway::testing {

class Scratch {
 public:
  ~Scratch() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  // Returns the file's path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

 private:
  static std::string Make() {
    std::string path = std::filesystem::temp_directory_path() / "spillway-fuzz-XXXXXX";
    return mkdtemp(path.data()) == nullptr ? std::string() : path;
  }

  const std::string path_ = Make();
};

}  // namespace spillway::testing

#endif  // SPILLWAY_TESTS_FUZZ_SCRATCH_H_
