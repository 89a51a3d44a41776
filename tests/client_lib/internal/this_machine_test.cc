// nvidia-smi's output becomes the machine of a request, and none of its faults stops a request.
#include "client_lib/internal/this_machine.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client_lib/internal/program_output.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rewrite_core/analysis/machine/hardware.h"
#include "rewrite_core/base/error.h"
#include "tests/client_lib/temp_dir.h"

namespace spillway::internal {
namespace {

using ::spillway::testing::TempDir;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;
// Enough for a script on a busy machine, and a test's wait for one that hangs.
constexpr absl::Duration kEnough = absl::Seconds(30);
constexpr absl::Duration kSoon = absl::Milliseconds(300);

// A folder in front of PATH for one test.
class ThisMachineTest : public ::testing::Test {
 protected:
  ThisMachineTest() : path_(getenv("PATH")) { SetPath(absl::StrCat(dir_ / "", ":", path_)); }
  ~ThisMachineTest() override { SetPath(path_); }

  static void SetPath(const std::string& path) { setenv("PATH", path.c_str(), 1); }

  // An nvidia-smi that is this script.
  void NvidiaSmi(const std::string& script) {
    const std::string file = dir_.Write("nvidia-smi", absl::StrCat("#!/bin/sh\n", script, "\n"));
    ASSERT_EQ(chmod(file.c_str(), 0700), 0);
  }

  // Hardware that specifies nothing, or only this, filled in.
  v1::Hardware Filled(absl::Duration limit = kEnough, v1::Hardware hardware = {}) {
    const absl::StatusOr<std::string> line = FillHardware(AskMachine(limit), &hardware);
    EXPECT_TRUE(line.ok()) << line.status();
    line_ = line.value_or("");
    EXPECT_THAT(line_, Not(HasSubstr("\n")));
    return hardware;
  }

  const std::string path_;
  const TempDir dir_;
  std::string line_;
};

TEST_F(ThisMachineTest, TheSmallestGpuIsTheBudget) {
  NvidiaSmi("case $1 in *=name) ;; *) echo 40960, 8.0; echo 16280, 6.0; echo 32480, 7.0;; esac");
  const v1::Hardware hardware = Filled();
  EXPECT_EQ(hardware.gpu_memory_bytes(), UsableBytes(16280 * kMiB, 6));
  EXPECT_EQ(hardware.gpu_memory_source(), v1::MEMORY_SOURCE_NVIDIA_SMI);
  EXPECT_THAT(line_, AllOf(HasSubstr("from nvidia-smi: 3 times a GPU, "), HasSubstr("15.90 GiB"),
                           HasSubstr("on the smallest")));
}

TEST_F(ThisMachineTest, ItIsAskedInItsOwnWords) {
  NvidiaSmi(absl::StrCat("echo \"$*\" >> ", dir_ / "asked", "; echo 16280, 6.0"));
  EXPECT_TRUE(Filled().has_gpu_memory_bytes());
  std::ifstream asked(dir_ / "asked");
  std::string words;
  std::getline(asked, words);
  EXPECT_EQ(words,
            "--query-gpu=memory.total,compute_cap,memory.free --format=csv,noheader,nounits");
}

// By the rule for the total TensorFlow gets 13,610 of a T4's 15,360 MiB: less 700 of the driver,
// less 1,050. Of free memory it gets all but 1,050, or a twentieth.
TEST_F(ThisMachineTest, LessIsFreeWhereTheJobRuns) {
  struct Case {
    const char* answer;
    int64_t planned_mib;
    bool warns;
  };
  for (const Case& one :
       std::vector<Case>{{"15360, 7.5", 13610, false},
                         {"15360, 7.5, 15100", 13610, false},  // As it is idle.
                         {"15360, 7.5, 14404", 13610, false},  // 256 MiB less, and one more.
                         {"15360, 7.5, 14403", 13312, true},
                         {"15360, 7.5, 8218", 7168, true},  // 7,168 are left: a multiple of 256.
                         {"15360, 7.5, 8217", 6912, true},
                         {"15360, 7.5, 1400", 1024, true},  // Below 2 GiB TensorFlow leaves 225.
                         {"15360, 7.5, 480", 13610, true},  // Nothing to plan for.
                         {"15360, 7.5, 0", 13610, true},
                         {"15360, 7.5, 15361", 13610, false},
                         {"15360, 7.5, -1", 13610, false},
                         {"15360, 7.5, [N/A]", 13610, false},
                         {"15360, [N/A], 8218", 0, true}}) {
    NvidiaSmi(absl::StrCat("case $1 in *=name) echo Tesla T4;; *memory.total*) echo '", one.answer,
                           "';; esac"));
    const absl::StatusOr<ThisMachine> machine = AskMachine(kEnough);
    v1::Hardware hardware;
    ASSERT_TRUE(FillHardware(machine, &hardware).ok());
    const std::string warning = LimitToFreeMemory(machine, &hardware);
    if (one.planned_mib > 0) {
      EXPECT_EQ(hardware.gpu_memory_bytes(), one.planned_mib * kMiB) << one.answer;
    }
    EXPECT_EQ(!warning.empty(), one.warns) << one.answer << warning;
    EXPECT_THAT(warning, AnyOf("", AllOf(HasSubstr("another process has memory of Tesla T4"),
                                         HasSubstr("SPILLWAY_GPU_MEMORY_BYTES"))));
  }
  // Of several GPUs, other processes of the job may use the others.
  NvidiaSmi("case $1 in *=name) ;; *) echo 15360, 7.5, 200; echo 15360, 7.5, 15100;; esac");
  const absl::StatusOr<ThisMachine> machine = AskMachine(kEnough);
  v1::Hardware hardware = Filled();
  EXPECT_EQ(LimitToFreeMemory(machine, &hardware), "");
  EXPECT_EQ(hardware.gpu_memory_bytes(), 13610 * kMiB);
}

TEST_F(ThisMachineTest, AnOldDriverDoesNotKnowTheCapability) {
  NvidiaSmi(
      "case $1 in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit "
      "2;; esac; echo 16280");
  EXPECT_EQ(Filled().gpu_memory_bytes(), UsableBytes(16280 * kMiB, 0));
  EXPECT_THAT(line_, Not(HasSubstr("smallest")));
}

// As nvidia-smi does it without a driver, without a GPU, and others of its name.
TEST_F(ThisMachineTest, WhatIsNoAnswerLeavesTheMemory) {
  for (const char* script : {
           "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
           "driver.\"; exit 9",
           "echo 16280, 6.0; exit 1",
           "echo 'No devices were found'",
           "exit 0",
           "echo '[N/A], 12.1'",
           "echo 16280, 6.0; echo '[Unknown Error], 6.0'",
           "echo 0, 6.0",
           "echo -5, 6.0",
           "echo 99999999999999999999, 6.0",
           "echo 9007199254740992, 6.0",
           "echo 500, 6.0",  // Nothing is left of it.
           "printf '\\000\\377\\n'",
           "yes 16280, 6.0",  // Without end.
           "kill -SEGV $$",
       }) {
    NvidiaSmi(script);
    EXPECT_FALSE(Filled().has_gpu_memory_bytes()) << script;
  }
}

TEST_F(ThisMachineTest, NoProgramLeavesThePreset) {
  SetPath(dir_ / "");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
  SetPath("");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
  unsetenv("PATH");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
}

// A file without #! is for a shell, which is not run; nor is a file in a relative folder.
TEST_F(ThisMachineTest, NoShellAndNoRelativeFolder) {
  NvidiaSmi("");
  dir_.Write("nvidia-smi", "echo 16280, 6.0\n");
  EXPECT_FALSE(Filled().has_gpu_memory_bytes());
  NvidiaSmi("echo 16280, 6.0");
  EXPECT_TRUE(Filled().has_gpu_memory_bytes());
  char* folder = getcwd(nullptr, 0);
  ASSERT_EQ(chdir((dir_ / "").c_str()), 0);
  for (const char* path : {".", "", ":."}) {
    SetPath(path);
    EXPECT_FALSE(Filled().has_gpu_memory_bytes()) << path;
  }
  EXPECT_EQ(chdir(folder), 0);
  free(folder);
}

// The pipe stays open for reading here; its other end closes when the last process of the script
// is gone.
TEST_F(ThisMachineTest, OneThatHangsIsKilledWithAllThatItStarted) {
  const std::string alive = dir_ / "live";
  ASSERT_EQ(mkfifo(alive.c_str(), 0600), 0);
  for (const char* how : {"sleep 1000", "echo 16280, 6.0; sleep 1000", "exec 1>&-; sleep 1000",
                          "trap '' TERM INT HUP; while true; do sleep 1000; done"}) {
    const int fd = open(alive.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    NvidiaSmi(absl::StrCat("exec 9> ", alive, "; printf x >&9; ", how));
    const absl::Time start = absl::Now();
    EXPECT_FALSE(Filled(kSoon).has_gpu_memory_bytes()) << how;
    EXPECT_LT(absl::Now() - start, kSoon + kReapTime + kEnough) << how;
    char started = 0;
    EXPECT_EQ(read(fd, &started, 1), 1) << how;  // Or it would not be known to have hung.
    pollfd gone = {fd, 0, 0};
    EXPECT_EQ(poll(&gone, 1, static_cast<int>(absl::ToInt64Milliseconds(kEnough))), 1) << how;
    EXPECT_NE(gone.revents & POLLHUP, 0) << how;
    close(fd);
  }
}

TEST_F(ThisMachineTest, WithoutAProgramNothingIsFilledIn) {
  SetPath(dir_ / "");
  EXPECT_EQ(Filled().ByteSizeLong(), 0u);
  EXPECT_EQ(line_, "");
  v1::Hardware hardware;
  hardware.set_preset("auto");
  const auto line = FillHardware(AskMachine(kEnough), &hardware);
  EXPECT_EQ(core::GetErrorInfo(line.status()).reason(), "BAD_OPTION");
  EXPECT_THAT(std::string(line.status().message()), HasSubstr("no nvidia-smi here identifies"));
}

// Both queries, of which a real one knows all columns.
TEST_F(ThisMachineTest, ACardWithAPresetIsPlannedForAsThat) {
  NvidiaSmi(
      "case $1 in *=name) echo NVIDIA H100 80GB HBM3; echo NVIDIA H100 80GB HBM3;; *memory*) echo "
      "81559, 9.0; echo 81559, 9.0;; *) echo GPU-0, Disabled, 5, 16; echo GPU-1, Disabled, 5, "
      "16;; esac");
  v1::Hardware hardware = Filled();
  EXPECT_EQ(hardware.preset(), "h100_sxm5");
  EXPECT_EQ(hardware.gpu_memory_bytes(), UsableBytes(81559 * kMiB, 9));
  EXPECT_FALSE(hardware.has_d2h_bytes_per_s());
  EXPECT_GT(hardware.host_memory_bytes(), int64_t{64} << 20);
  EXPECT_LE(hardware.host_memory_bytes(), sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2);
  EXPECT_THAT(line_, HasSubstr("2 times NVIDIA H100 80GB HBM3, "));
  // Given values take precedence.
  v1::Hardware given;
  given.set_preset("auto");
  given.set_gpu_memory_bytes(1);
  hardware = Filled(kEnough, given);
  EXPECT_EQ(hardware.preset(), "h100_sxm5");
  EXPECT_EQ(hardware.gpu_memory_bytes(), 1);
  EXPECT_EQ(hardware.gpu_memory_source(), v1::MEMORY_SOURCE_UNSPECIFIED);
}

TEST_F(ThisMachineTest, OnlyVisibleGpusCount) {
  NvidiaSmi(
      "case $1 in *=name) echo NVIDIA A100-SXM4-40GB; echo Tesla T4;; *memory*) echo 40960, 8.0; "
      "echo 15360, 7.5;; *) echo GPU-1234; echo GPU-5678;; esac");
  setenv("CUDA_VISIBLE_DEVICES", "GPU-12", 1);
  EXPECT_EQ(Filled().preset(), "a100_40gb_sxm4");
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(Filled().preset(), "");
  EXPECT_THAT(line_,
              AllOf(HasSubstr("from nvidia-smi: NVIDIA A100-SXM4-40GB and Tesla T4, "),
                    HasSubstr("; there is no preset for several kinds of GPUs: name one with")));
}

// The reason for a missing answer, if known: users without nvidia-smi get no message.
TEST_F(ThisMachineTest, OneThatDoesNotAnswerIsReported) {
  const auto why = [this](const std::string& script, absl::Duration limit = kEnough) {
    NvidiaSmi(script);
    EXPECT_EQ(Filled(limit).ByteSizeLong(), 0u) << script;
    return line_;
  };
  EXPECT_EQ(why("echo; echo \"It couldn't reach the driver.\"; echo More.; exit 9"),
            "nvidia-smi failed: It couldn't reach the driver; give --hardware and "
            "--gpu-memory-bytes");
  EXPECT_EQ(why("echo No devices were found; exit 6"), "");
  EXPECT_THAT(why("exit 1"), HasSubstr("nvidia-smi failed; give"));
  EXPECT_THAT(why("printf '\\033[31mx'; exit 1"), HasSubstr("nvidia-smi failed: \\x1b[31mx; give"));
  EXPECT_THAT(why("sleep 1000", kSoon), HasSubstr("nvidia-smi did not answer in 0.3 s; give"));
  EXPECT_THAT(
      why("case $1 in *uuid*) echo GPU-1, Enabled, 4, 16;; *name) echo NVIDIA H200;; *) "
          "echo 143771, 9.0;; esac"),
      HasSubstr("NVIDIA H200 is divided by MIG, and nvidia-smi does not report the memory of "
                "a slice here; give --hardware and --gpu-memory-bytes"));
}

TEST(NeedsMachineTest, OnlyWhereItIsOpenAndOfUse) {
  v1::RewriteOptions rewrite;
  EXPECT_TRUE(NeedsMachine(rewrite));
  v1::Hardware& hardware = *rewrite.mutable_step()->mutable_hardware();
  hardware.set_preset("v100_pcie");
  EXPECT_FALSE(NeedsMachine(rewrite));
  hardware.Clear();
  // Its rates are open.
  hardware.set_gpu_memory_bytes(1);
  EXPECT_TRUE(NeedsMachine(rewrite));
  hardware.Clear();
  hardware.set_allocator_reserve(7);  // The core reports the error.
  EXPECT_FALSE(NeedsMachine(rewrite));
  rewrite.Clear();
  rewrite.mutable_strip();
  EXPECT_FALSE(NeedsMachine(rewrite));
  rewrite.mutable_scope();
  rewrite.set_simulation(v1::SIMULATION_OFF);
  EXPECT_FALSE(NeedsMachine(rewrite));
  rewrite.mutable_step()->mutable_hardware()->set_preset("auto");
  EXPECT_TRUE(NeedsMachine(rewrite));
  // The tuner needs it even without a simulation.
  rewrite.mutable_step()->clear_hardware();
  rewrite.mutable_level();
  EXPECT_TRUE(NeedsMachine(rewrite));
  v1::SimulateOptions unlimited;
  unlimited.set_no_budget(true);  // Its speed is open.
  EXPECT_TRUE(NeedsMachine(unlimited));
  EXPECT_TRUE(NeedsMachine(v1::ExploreOptions()));
  // Every number is given.
  *rewrite.mutable_step()->mutable_hardware() =
      core::HardwarePresets()[0].hardware.ToReport().hardware();
  rewrite.mutable_step()->mutable_hardware()->clear_preset();
  EXPECT_FALSE(NeedsMachine(rewrite));
}

ThisMachine Parsed(const NvidiaSmiOutput& output,
                   absl::optional<absl::string_view> visible = absl::nullopt) {
  const auto machine = ParseMachine(output, Host::kOther, visible);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return machine.value_or(ThisMachine());
}

// Their architecture by https://developer.nvidia.com/cuda-gpus.
TEST(ParseMachineTest, OtherCardsAreLikeTheMostSimilarMachine) {
  constexpr struct {
    const char *gpu, *capability, *preset;
  } kCards[] = {
      {"NVIDIA GeForce GTX 1080 Ti", "6.1", "p100_pcie"},
      {"NVIDIA TITAN V", "7.0", "v100_pcie"},
      {"Quadro RTX 8000", "7.5", "t4"},
      {"NVIDIA A30", "8.0", "a100_40gb_pcie4"},
      {"NVIDIA A10G", "8.6", "a10"},
      {"NVIDIA GeForce RTX 3090", "8.6", "a10"},
      {"NVIDIA GeForce RTX 4090", "8.9", "l40s"},
      {"NVIDIA H100 NVL", "9.0", "h100_pcie5"},
      {"NVIDIA B200", "10.0", "h100_pcie5"},
  };
  for (const auto& card : kCards) {
    const ThisMachine machine =
        Parsed({absl::StrCat("24564, ", card.capability), card.gpu, "GPU-1, [N/A], 4, 8\n"});
    EXPECT_EQ(machine.preset, card.preset) << card.gpu;
    EXPECT_TRUE(machine.estimated) << card.gpu;
    EXPECT_EQ(machine.link_bytes_per_s, 12.5e9) << card.gpu;  // Half the lanes of PCIe 4.0.
    v1::Hardware hardware;
    EXPECT_THAT(*FillHardware(machine, &hardware), HasSubstr("an estimate")) << card.gpu;
    EXPECT_EQ(hardware.preset(), card.preset);
    EXPECT_EQ(hardware.h2d_bytes_per_s(), 12.5e9);
  }
  // A driver that does not report the architecture, or one older than all of these.
  for (const char* memory : {"24564", "24564, [N/A]", "11441, 3.7"}) {
    const ThisMachine machine = Parsed({memory, "NVIDIA GeForce RTX 4090\n", "GPU-1, , 4, 16\n"});
    EXPECT_EQ(machine.preset, "");
    EXPECT_GT(machine.usable_bytes, 0);
    v1::Hardware hardware;
    EXPECT_THAT(*FillHardware(machine, &hardware),
                AllOf(HasSubstr("NVIDIA GeForce RTX 4090, "),
                      HasSubstr("; there is no preset for it: name one with --hardware")));
    hardware.set_preset("auto");
    EXPECT_FALSE(FillHardware(machine, &hardware).ok());
  }
}

// NVIDIA's own figures for TensorFloat-32 without sparsity, or for float32 before there was that.
// The preset's own value is not sent: older servers know no compute capability.
TEST(ParseMachineTest, AComputeCapabilityIsSaidWhereThePresetHasAnother) {
  constexpr struct {
    const char *gpu, *capability;
    double said;
  } kCards[] = {
      {"Tesla V100-PCIE-16GB", "7.0", 0},
      {"NVIDIA GeForce RTX 4090", "8.9", 0},
      {"NVIDIA GeForce GTX 1080", "6.1", 6.1},
      {"NVIDIA B200", "10.0", 10},
      {"NVIDIA B200", "[N/A]", 0},
      {"NVIDIA B200", "100.5", 0},
  };
  for (const auto& card : kCards) {
    const ThisMachine machine = Parsed({absl::StrCat("24564, ", card.capability), card.gpu, ""});
    v1::Hardware hardware;
    EXPECT_TRUE(FillHardware(machine, &hardware).ok());
    EXPECT_EQ(hardware.compute_capability(), card.said) << card.gpu;
    EXPECT_EQ(hardware.has_compute_capability(), card.said > 0) << card.gpu;
    v1::Hardware given;
    given.set_compute_capability(7.5);
    EXPECT_TRUE(FillHardware(machine, &given).ok());
    EXPECT_EQ(given.compute_capability(), 7.5) << card.gpu;
  }
}

TEST(ParseMachineTest, RatesOfOtherCards) {
  constexpr struct {
    const char *gpu, *capability;
    double tflops, gb_per_s;
  } kCards[] = {
      {"NVIDIA GeForce GTX 1080 Ti", "6.1", 11.34, 484},
      {"Quadro RTX 8000", "7.5", 16.3, 672},
      {"NVIDIA A30", "8.0", 82, 933},
      {"NVIDIA A40", "8.6", 74.8, 696},
      {"NVIDIA RTX A6000", "8.6", 77.4, 768},
      {"NVIDIA GeForce RTX 3090", "8.6", 35.6, 936},
      {"NVIDIA GeForce RTX 4060", "8.9", 15.1, 272},
      {"NVIDIA GeForce RTX 4090", "8.9", 82.6, 1008},
      {"NVIDIA RTX 6000 Ada Generation", "8.9", 182.1, 960},
      {"NVIDIA H100 NVL", "9.0", 417.5, 3938},
      {"NVIDIA GeForce RTX 5090", "12.0", 104.8, 1792},
  };
  for (const auto& card : kCards) {
    const ThisMachine machine =
        Parsed({absl::StrCat("24564, ", card.capability), card.gpu, "GPU-1, [N/A], 4, 16\n"});
    v1::Hardware hardware;
    EXPECT_THAT(*FillHardware(machine, &hardware), HasSubstr("by NVIDIA's figures")) << card.gpu;
    EXPECT_NEAR(hardware.peak_flops(), card.tflops * 1e12, 0.02 * card.tflops * 1e12) << card.gpu;
    EXPECT_DOUBLE_EQ(hardware.mem_bytes_per_s(), card.gb_per_s * 1e9) << card.gpu;
    // Given values take precedence, and are not mixed with others.
    v1::Hardware given;
    given.set_peak_flops(1e12);
    EXPECT_TRUE(FillHardware(machine, &given).ok());
    EXPECT_EQ(given.peak_flops(), 1e12);
    EXPECT_FALSE(given.has_mem_bytes_per_s());
  }
  // One that is not known, nor of the next name.
  for (const char* gpu : {"NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 40"}) {
    v1::Hardware hardware;
    EXPECT_TRUE(FillHardware(Parsed({"24564, 8.9", gpu, "GPU-1, [N/A], 4, 16\n"}), &hardware).ok());
    EXPECT_FALSE(hardware.has_peak_flops()) << gpu;
  }
}

// As the CUDA programming guide says it of CUDA_VISIBLE_DEVICES.
TEST(ParseMachineTest, CudaVisibleDevices) {
  const NvidiaSmiOutput alike = {"40960, 8.0\n40960, 8.0\n40960, 8.0\n",
                                 "NVIDIA A10\nNVIDIA A10\nNVIDIA A10\n",
                                 "GPU-aa1\nGPU-ab2\nGPU-b3\n"};
  EXPECT_EQ(Parsed(alike).gpu_count, 3);
  for (const auto& [visible, count] : {std::pair<const char*, int>{"0", 1},
                                       {"2,0", 2},
                                       {" 1 , 2 ", 2},
                                       {"0,7,1", 1},
                                       {"0,-1,1", 1},
                                       {"GPU-aa,GPU-b3", 2},
                                       {"1,nonsense", 1}}) {
    EXPECT_EQ(Parsed(alike, visible).gpu_count, count) << visible;
  }
  for (const char* visible : {"", "-1", "NoDevFiles", "3", "GPU-c", "MIG-aa1/1/0"}) {
    const auto machine = ParseMachine(alike, Host::kOther, visible);
    EXPECT_THAT(std::string(machine.status().message()), HasSubstr("CUDA_VISIBLE_DEVICES"))
        << visible;
  }
  // Of different kinds, an index may mean any of them.
  const NvidiaSmiOutput mixed = {"40960, 8.0\n15360, 7.5\n", "NVIDIA A10\nTesla T4\n",
                                 "GPU-1\nGPU-2\n"};
  EXPECT_EQ(Parsed(mixed, "0").usable_bytes, UsableBytes(15360 * kMiB, 7));
  EXPECT_EQ(Parsed(mixed, "GPU-1").usable_bytes, UsableBytes(40960 * kMiB, 8));
}

TEST(ParseMachineTest, OfMigSlicesNothingIsKnown) {
  const auto machine =
      ParseMachine({"40960, 8.0\n", "NVIDIA A100-SXM4-40GB", "GPU-1, Enabled, 4, 16"}, Host::kOther,
                   absl::nullopt);
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr("divided by MIG"));
}

TEST(PresetOfGpuTest, TheNamesThatDriversGive) {
  const std::pair<const char*, const char*> kGpus[] = {
      {"Tesla T4", "t4"},
      {"NVIDIA T4", "t4"},
      {"NVIDIA Tesla T4", "t4"},
      {"Tesla V100-SXM2-32GB", "v100_32gb_sxm2"},
      {"Tesla V100-PCIE-32GB", "v100_32gb_pcie"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40S", "l40s"},
      {"A100-SXM4-40GB", "a100_40gb_sxm4"},
      {"NVIDIA A100-SXM4-80GB", "a100_80gb_sxm4"},
      {"NVIDIA A100 80GB PCIe", "a100_80gb_pcie4"},
      {"NVIDIA H100 PCIe", "h100_pcie5"},
      {"NVIDIA H100 80GB HBM3", "h100_sxm5"},
      {"NVIDIA H200", "h200_sxm5"},
      {"NVIDIA GH200 480GB", "gh200_nvlink_c2c"},
      // Others, for all that their names begin alike.
      {"NVIDIA A10G", ""},
      {"NVIDIA L40", ""},
      {"NVIDIA H100 NVL", ""},
      {"NVIDIA GeForce RTX 3090", ""},
      {"", ""},
  };
  std::set<std::string> known;
  for (const core::HardwarePreset& preset : core::HardwarePresets()) {
    known.insert(preset.hardware.preset);
  }
  for (const auto& [gpu, preset] : kGpus) {
    EXPECT_EQ(PresetOfGpu(gpu, Host::kOther), preset) << gpu;
    EXPECT_TRUE(*preset == '\0' || known.count(preset) > 0) << preset;
  }
  EXPECT_EQ(PresetOfGpu("Tesla V100-SXM2-16GB", Host::kOther), "v100_16gb_sxm2");
  EXPECT_EQ(PresetOfGpu("Tesla V100-SXM2-16GB", Host::kPower), "v100_nvlink2");
}

TEST(ParseMachineTest, AMachineHasOneKind) {
  const ThisMachine one = Parsed({"", "NVIDIA L4\nNVIDIA L4\n", ""});
  EXPECT_EQ(one.preset, "l4");
  EXPECT_EQ(one.gpu_count, 2);
  EXPECT_EQ(one.usable_bytes, 0);
  for (const auto& [names, says] :
       {std::pair<const char*, const char*>{"", "no nvidia-smi here"},
        {"NVIDIA L4\nTesla T4\nNVIDIA L4\n",
         "this machine has 2 times NVIDIA L4 and Tesla T4, and there "
         "is no preset for several"},
        {"NVIDIA A10G\n", "has NVIDIA A10G, and there is no preset for it; name"}}) {
    v1::Hardware hardware;
    hardware.set_preset("auto");
    const absl::Status status =
        FillHardware(ParseMachine({"", names, ""}, Host::kOther, absl::nullopt), &hardware)
            .status();
    EXPECT_EQ(core::GetErrorInfo(status).reason(), "BAD_OPTION") << names;
    EXPECT_THAT(std::string(status.message()), HasSubstr(says)) << names;
  }
}

// TensorFlow's memory, in logs that users published ("Created device ... with N MB memory"), beside
// nvidia-smi's output for such a board, with older and newer drivers.
TEST(UsableBytesTest, IsWhatTensorFlowFoundOnRealGpusOrALittleLess) {
  constexpr struct {
    const char* gpu;
    int64_t total_mib;
    int major;
    int64_t found_mib;
  } kLogs[] = {
      {"P100-PCIE-16GB, TensorFlow 1", 16280, 6, 15216},
      {"V100-SXM2-32GB, TensorFlow 1", 32480, 7, 30458},
      {"T4", 15109, 7, 13737},
      {"T4", 15360, 7, 13737},
      {"A100-SXM4-40GB, the least of several logs", 40536, 8, 38068},
      {"A100-SXM4-40GB, the least of several logs", 40960, 8, 38068},
  };
  for (const auto& log : kLogs) {
    const int64_t usable = UsableBytes(log.total_mib * kMiB, log.major);
    EXPECT_LE(usable, log.found_mib * kMiB) << log.gpu;
    EXPECT_GE(usable, log.found_mib * kMiB * 0.95) << log.gpu;
  }
}

TEST(UsableBytesTest, TensorFlowKeepsSoMuch) {
  // 2 GiB less 700 MiB is below 2 GiB: 225 MiB.
  EXPECT_EQ(UsableBytes(2048 * kMiB, 8), (2048 - 700 - 225) * kMiB);
  // A twentieth of it is less than each of these.
  EXPECT_EQ(UsableBytes(8192 * kMiB, 6), (8192 - 700 - 500) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 7), (8192 - 700 - 1050) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 8), (8192 - 700 - 1536) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 9), (8192 - 700 - 1800) * kMiB);
  EXPECT_EQ(UsableBytes(8192 * kMiB, 0), UsableBytes(8192 * kMiB, 8));
  // A fortieth to the driver, and then a twentieth.
  EXPECT_EQ(UsableBytes(80000 * kMiB, 9), (80000 - 2000 - 3900) * kMiB);
}

TEST(OutputOfTest, ReturnsWhatAProgramPrintsUnlessItFails) {
  const Deadline deadline(kEnough);
  EXPECT_EQ(OutputOf({"printf", "%s|", "a b", "$HOME", "*"}, deadline), "a b|$HOME|*|");
  EXPECT_EQ(OutputOf({"cat"}, deadline), "");  // There is no input.
  EXPECT_EQ(OutputOf({"false"}, deadline), absl::nullopt);
  EXPECT_EQ(OutputOf({"no-such-program"}, deadline), absl::nullopt);
}

}  // namespace
}  // namespace spillway::internal
