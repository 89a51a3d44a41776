#include "server/access/cpu_charge.h"

#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <memory>

#include "tests/testing/test_certs.h"

namespace spillway::server {
namespace {

constexpr absl::Duration kSpin = absl::Milliseconds(20);

void Spin() {
  const absl::Duration begin = ThreadCpuTime();
  while (ThreadCpuTime() - begin < kSpin) continue;
}

TEST(CpuChargeTest, EachPaysForItsOwn) {
  const test_certs::TempFolder folder;
  folder.Write("callers",
               R"(caller { name: "a" anybody: true } caller { name: "b" certificate: "b" })");
  prometheus::Registry registry;
  Metrics metrics(registry, "1.2.3");
  const auto list = AccessList::Load(folder.path("callers"), metrics, RealClock());
  ASSERT_TRUE(list.ok()) << list.status();
  const auto a = *(*list)->Find({}), b = *(*list)->Find({{"b"}, {}});
  const auto paid = [&metrics](const char* name) {
    return metrics.OfCaller(name).cpu_seconds->Value();
  };
  const double spin = absl::ToDoubleSeconds(kSpin);
  const absl::Duration begin = ThreadCpuTime();
  {
    const CpuCharge outer(a, list->get());
    Spin();
    {
      const CpuCharge inner(b, list->get());
      Spin();
      EXPECT_GE(paid("a"), spin) << "up to here";
      EXPECT_EQ(paid("b"), 0);
      CpuCharge::Settle();
      EXPECT_GE(paid("b"), spin);
      {
        const CpuCharge nobody(nullptr, nullptr);
        Spin();
      }
    }
    Spin();
  }
  Spin();
  const double all = absl::ToDoubleSeconds(ThreadCpuTime() - begin);
  EXPECT_GE(paid("a"), 2 * spin);
  EXPECT_GE(paid("b"), spin);
  EXPECT_LE(paid("a") + paid("b"), all - 2 * spin) << "what nobody pays for";
  CpuCharge::Settle();  // Charged to no caller.
}

}  // namespace
}  // namespace spillway::server
