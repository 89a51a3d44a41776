// The warning of an unnamed machine.
#include "client_lib/text/machine_text.h"

#include "gtest/gtest.h"

namespace spillway::text {
namespace {

TEST(AssumedTextTest, OnlyOfAMachineThatNobodyNamed) {
  v1::HardwareReport hardware;
  hardware.mutable_hardware()->set_preset("t4");
  EXPECT_EQ(AssumedText(hardware), "");
  hardware.set_preset_assumed(true);
  EXPECT_EQ(AssumedText(hardware),
            "t4 is assumed: no hardware is named, and nvidia-smi does not identify it (spillway "
            "capabilities lists the presets)");
}

}  // namespace
}  // namespace spillway::text
