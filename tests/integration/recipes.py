#!/usr/bin/env python3
"""Makes a program of the pieces of client_lib/RECIPES.md: recipes.py RECIPES.md TARGET > recipes.cc.

Each piece of C++ becomes a function; `host:7070` becomes TARGET. The program runs all of them on the
graph that it is given, and says which one failed.
"""
import re
import sys

HEAD = """#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "spillway/client.h"
#include "spillway/local_connection.h"
#include "spillway/remote_connection.h"

namespace {
"""
TAIL = """
}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  int failed = 0;
%s  return failed == 0 ? 0 : 1;
}
"""
CALL = """  if (const absl::Status status = Recipe%d(bytes.str()); !status.ok()) {
    std::cerr << "%s: " << status << "\\n";
    ++failed;
  }
"""


def main():
    path, target = sys.argv[1:]
    with open(path, encoding="utf-8") as page:
        found = re.findall(r"^## ([^\n]*)\n+```cpp\n(.*?)^```$", page.read(), re.M | re.S)
    if not found:
        sys.exit("%s has no piece of C++" % path)
    print(HEAD)
    for i, (_, code) in enumerate(found):
        # A recipe may need no graph.
        print("absl::Status Recipe%d([[maybe_unused]] const std::string& graph) {\n%s}\n"
              % (i, code.replace("host:7070", target)))
    print(TAIL % "".join(CALL % (i, title) for i, (title, _) in enumerate(found)))


if __name__ == "__main__":
    main()
