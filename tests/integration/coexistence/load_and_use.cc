// Loads libraries in the order given, for all to see as if the program were linked with them, and
// then calls a function of each. Usage: load_and_use {LIBRARY FUNCTION}...
#include <dlfcn.h>
#include <stdio.h>

#include <vector>

int main(int argc, char** argv) {
  std::vector<void*> libraries;
  for (int i = 1; i + 1 < argc; i += 2) {
    libraries.push_back(dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL));
    if (libraries.back() == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    auto* use = reinterpret_cast<int (*)()>(dlsym(libraries[i / 2], argv[i + 1]));
    if (use == nullptr) return 2;
    if (use() != 0) {
      fprintf(stderr, "%s failed\n", argv[i + 1]);
      return 1;
    }
  }
  puts("all work");
}
