// libspillway.so finds its other half by its own location, not by its name when loaded.
#include <dlfcn.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "spillway/spillway.h"

namespace {

TEST(LoadTest, ALibraryLoadedByARelativeNameIsFoundFromAnotherFolder) {
  ASSERT_EQ(chdir(SPILLWAY_LIB_DIR), 0);
  void* const library = dlopen("./libspillway.so", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  ASSERT_EQ(chdir("/"), 0);
  const auto client_new =
      reinterpret_cast<decltype(&spillway_client_new)>(dlsym(library, "spillway_client_new"));
  const auto message = reinterpret_cast<decltype(&spillway_status_message)>(
      dlsym(library, "spillway_status_message"));
  const auto client_free =
      reinterpret_cast<decltype(&spillway_client_free)>(dlsym(library, "spillway_client_free"));
  spillway_client* client = nullptr;
  const spillway_status* const status = client_new(nullptr, &client);
  EXPECT_EQ(status, nullptr) << message(status);
  EXPECT_NE(client, nullptr);
  client_free(client);
}

}  // namespace
