#include "worker/answer.hpp"

#include <gtest/gtest.h>

namespace assay::host::worker {
namespace {

TEST(FoundDeviceAnswer, ComesBackWithItsLibraries) {
  FoundDevice found;
  found.status = record::Status::ok;
  found.device.kind = "cuda", found.device.uuid = "GPU-1";
  found.count = 4, found.note = "a note";
  found.libraries = {{"libb.so", "b1"}, {"liba.so", "no build id"}};
  const auto back = found_device_from(to_event(found));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->device.uuid, "GPU-1");
  EXPECT_EQ(back->count, 4);
  EXPECT_EQ(back->note, "a note");
  EXPECT_EQ(back->libraries, found.libraries);
}

TEST(FoundDeviceAnswer, OfAHostWithoutLibrariesHasNone) {
  const auto back = found_device_from(R"({"event":"result","probe":{"status":"ok","device":{"kind":"cpu"}}})");
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->libraries.empty());
}

}  // namespace
}  // namespace assay::host::worker
