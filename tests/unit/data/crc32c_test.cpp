#include "crc32c.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace assay::data {
namespace {

// From RFC 3720 (iSCSI), appendix B.4, and the catalogue's check value.
TEST(Crc32c, KnownValues) {
  const std::vector<unsigned char> zeros(32, 0);
  const std::vector<unsigned char> ones(32, 0xff);
  std::vector<unsigned char> rising(32);
  std::iota(rising.begin(), rising.end(), static_cast<unsigned char>(0));
  for (const auto& checksum : {crc32c, crc32c_by_tables}) {
    EXPECT_EQ(checksum(0, "123456789", 9), 0xe3069283u);
    EXPECT_EQ(checksum(0, zeros.data(), 32), 0x8a9136aau);
    EXPECT_EQ(checksum(0, ones.data(), 32), 0x62a8ab43u);
    EXPECT_EQ(checksum(0, rising.data(), 32), 0x46dd794eu);
    EXPECT_EQ(checksum(0, "", 0), 0u);
  }
  EXPECT_EQ(crc_text(0xe30692u), "00e30692");
}

TEST(Crc32c, PartsMakeTheWholeAndBothWaysAgree) {
  std::vector<unsigned char> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 131 + i / 7);
  const std::uint32_t whole = crc32c(0, bytes.data(), bytes.size());
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    const std::uint32_t first = crc32c(0, bytes.data(), cut);
    EXPECT_EQ(crc32c(first, bytes.data() + cut, bytes.size() - cut), whole) << cut;
    EXPECT_EQ(crc32c_by_tables(first, bytes.data() + cut, bytes.size() - cut), whole) << cut;
  }
}

}  // namespace
}  // namespace assay::data
