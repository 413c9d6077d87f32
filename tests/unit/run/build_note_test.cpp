#include "run/build_note.hpp"

#include <gtest/gtest.h>

namespace assay::host::run::test {
namespace {

RunTarget plugin_of(const std::string& build) {
  RunTarget target;
  target.plugin_id = "org.x";
  target.plugin_build = build;
  return target;
}

record::Device backend_of(const std::string& build) {
  record::Device device;
  device.kind = "cpu";
  device.build = build;
  return device;
}

constexpr const char* optimised = "1.0.0 GNU 12.2.0 Release";

TEST(BuildNote, KnowsWhatABuildSaysOfItself) {
  for (const char* build :
       {"GNU 12.2.0 unoptimised", "GNU 12.2.0 Debug", "1.0.0 GNU 12.2.0 ", "GNU 12.2.0 Release -O1, not optimised",
        "1.0.0 GNU 12.2.0 nvcc 13.0 for 90 Release kernels not optimised"})
    EXPECT_TRUE(is_unoptimised(build)) << build;
  for (const char* build : {"GNU 12.2.0 Release", "GNU 12.2.0 RelWithDebInfo", "GNU 12.2.0 MinSizeRel", "unknown build",
                            "1.0.0 GNU 12.2.0 nvcc 13.0 for 90 Release", ""})
    EXPECT_FALSE(is_unoptimised(build)) << build;
}

TEST(BuildNote, NamesWhatIsNotOptimisedAndTheRemedy) {
  EXPECT_EQ(note_on_builds(plugin_of("GNU 12.2.0 Release"), backend_of(optimised), optimised), "");
  EXPECT_EQ(note_on_builds(plugin_of("GNU 12.2.0 unoptimised"), backend_of(optimised), optimised),
            "not optimised: plugin org.x (GNU 12.2.0 unoptimised); times may be many times too long: build with "
            "-DCMAKE_BUILD_TYPE=Release");
  EXPECT_EQ(note_on_builds(plugin_of("GNU 12.2.0 Release"), backend_of("1.0.0 GNU 12.2.0 "), "GNU 12.2.0 Debug"),
            "not optimised: the cpu device (1.0.0 GNU 12.2.0), assay (GNU 12.2.0 Debug); times may be many times too "
            "long: build with -DCMAKE_BUILD_TYPE=Release");
  EXPECT_TRUE(
      note_on_builds(plugin_of("GNU 12.2.0 Release"), backend_of("GNU Release kernels not optimised"), optimised)
          .ends_with(" and ASSAY_QUICK_KERNELS=OFF"));
  EXPECT_EQ(note_on_builds(plugin_of("GNU 12.2.0 Release -O1, not optimised"), backend_of(optimised), optimised),
            "not optimised: plugin org.x (GNU 12.2.0 Release -O1, not optimised); times may be many times too long: "
            "build with -DCMAKE_BUILD_TYPE=Release and ASSAY_QUICK_KERNELS=OFF");
}

}  // namespace
}  // namespace assay::host::run::test
