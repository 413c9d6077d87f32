// Choices that workloads make by timing, in the files of algorithms.
#include "common/kept_choices.hpp"

#include <assay/algorithms.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/chosen_algorithms.hpp"
#include "support/temporary_folder.hpp"
#include "support/variable.hpp"

namespace assay::compute {
namespace {

class KeptChoicesTest : public testing::Test {
 protected:
  KeptChoicesTest() { setenv("ASSAY_CACHE_DIR", folder_.path().c_str(), 1); }
  ~KeptChoicesTest() override {
    unsetenv("ASSAY_CACHE_DIR");
    unsetenv("ASSAY_ALGORITHMS");
    forget_algorithms();
  }
  static ChoicesInFile open(bool may_keep = true, const char* library = "NCCL 2.28.9") {
    return {"collectives", {"NVIDIA H200", library, "580.95.05", "power 700 W"}, [may_keep](std::span<const double>) {
              return may_keep;
            }};
  }
  test::TemporaryFolder folder_;
  const std::array<double, 3> times_{12.0, 10.0, 11.0};
};

TEST_F(KeptChoicesTest, ALaterProcessFindsWhatWasKeptUnderTheSameConditions) {
  open().keep("all_gather of 64 bytes", "windows", times_);
  EXPECT_EQ(open().find("all_gather of 64 bytes"), "windows");
  EXPECT_EQ(open().find("all_gather of 128 bytes"), std::nullopt);
  EXPECT_EQ(open(true, "NCCL 2.29.0").find("all_gather of 64 bytes"), std::nullopt);
}

TEST_F(KeptChoicesTest, WhatWasTimedBesideSomebodyElseIsNotKept) {
  open(false).keep("k", "windows", times_);
  EXPECT_EQ(open().find("k"), std::nullopt);
}

TEST_F(KeptChoicesTest, AnewForgetsAndFixedRefuses) {
  open().keep("k", "windows", times_);
  setenv("ASSAY_ALGORITHMS", "anew", 1);
  EXPECT_EQ(open().find("k"), std::nullopt);
  EXPECT_NO_THROW(open().refuse_to_choose("k"));
  setenv("ASSAY_ALGORITHMS", "fixed", 1);
  EXPECT_EQ(open().find("k"), "windows");
  EXPECT_THROW(open().refuse_to_choose("other"), Error);
}

TEST_F(KeptChoicesTest, AListedChoiceIsAmongTheAlgorithmsOfTheRecord) {
  open().list("all_gather of 64 bytes", "windows");
  const auto* const table = static_cast<const assay_algorithms*>(
      algorithms_extension(ASSAY_EXT_ALGORITHMS, [](void (*body)(void*), void* context) noexcept {
        body(context);
        return assay_status{ASSAY_OK};
      }));
  assay_algorithm one{};
  one.struct_size = sizeof one;
  ASSERT_EQ(table->get(nullptr, 0, &one), ASSAY_OK);
  EXPECT_STREQ(one.made_for, "all_gather of 64 bytes");
  EXPECT_STREQ(one.algorithm, "windows");
}

// A host whose device has a file of choices by this interface.
struct HostOfDevice {
  explicit HostOfDevice(const char* interface_id) : factory{interface_id, nullptr} {
    current = &factory;
    api.get_extension = [](const char*) noexcept -> const void* { return current; };
    api.struct_size = sizeof api;
    access.struct_size = sizeof access;
    access.api = &api;
    abi.struct_size = sizeof abi;
    abi.impl = this;
    abi.get_extension = [](const assay_host* h, const char* id) noexcept -> const void* {
      return std::string_view(id) == ASSAY_EXT_DEVICE ? &static_cast<const HostOfDevice*>(h->impl)->access : nullptr;
    };
    abi.log = [](const assay_host* h, int32_t level, assay_str text) noexcept {
      constexpr int32_t warning = 2;
      if (level == warning) static_cast<HostOfDevice*>(h->impl)->notes.emplace_back(text.data, text.size);
    };
  }
  static inline const void* current = nullptr;
  KeptChoicesFactory factory;
  assay_device_api api{};
  assay_device_access access{};
  assay_host abi{};
  std::vector<std::string> notes;
};

constexpr const char* other_revision = "assay.kept_choices/1 revision 1; release 0.9.0; calls itanium";

TEST(OpenKeptChoices, OfAnotherRevisionLeavesOneNote) {
  HostOfDevice device(other_revision);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(open_kept_choices(Host(&device.abi), "collectives", "NCCL 2.28.9"), nullptr);
  ASSERT_EQ(device.notes.size(), 1u);
  EXPECT_EQ(device.notes[0].rfind(
                "choices of collectives that are kept are of another revision, and are measured again: ", 0),
            0u)
      << device.notes[0];
  EXPECT_NE(device.notes[0].find("0.9.0"), std::string::npos) << device.notes[0];
}

TEST(OpenKeptChoices, OfAnotherRevisionAreNotMeasuredWhereAlgorithmsAreFixed) {
  HostOfDevice device(other_revision);
  const test::Variable fixed("ASSAY_ALGORITHMS", "fixed");
  try {
    open_kept_choices(Host(&device.abi), "collectives", "NCCL 2.28.9");
    FAIL() << "no refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_UNSUPPORTED);
    EXPECT_NE(std::string_view(e.what()).find("ASSAY_ALGORITHMS=fixed, but the choices of collectives"),
              std::string_view::npos)
        << e.what();
  }
  EXPECT_TRUE(device.notes.empty());
}

TEST(OpenKeptChoices, OfADeviceThatKeepsNoneLeavesNoNote) {
  HostOfDevice device("");
  HostOfDevice::current = nullptr;
  EXPECT_EQ(open_kept_choices(Host(&device.abi), "collectives", "NCCL 2.28.9"), nullptr);
  EXPECT_TRUE(device.notes.empty());
}

}  // namespace
}  // namespace assay::compute
