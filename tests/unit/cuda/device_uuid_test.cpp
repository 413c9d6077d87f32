#include "device_uuid.hpp"

#include <gtest/gtest.h>

namespace assay::cuda {
namespace {

TEST(DeviceUuid, IsWrittenAsNvidiaSmiDoes) {
  constexpr char bytes[16] = {'\x6f', '\x2c', '\x0a', '\x1b', '\x7d', '\x3e', '\x4f', '\x55',
                              '\x9a', '\x01', '\x01', '\x23', '\x45', '\x67', '\x89', '\xab'};
  EXPECT_EQ(uuid_text(bytes, false), "GPU-6f2c0a1b-7d3e-4f55-9a01-0123456789ab");
  EXPECT_EQ(uuid_text(bytes, true), "MIG-6f2c0a1b-7d3e-4f55-9a01-0123456789ab");
}

TEST(DeviceUuid, ZerosAreNone) {
  constexpr char bytes[16] = {};
  EXPECT_EQ(uuid_text(bytes, false), "");
}

}  // namespace
}  // namespace assay::cuda
