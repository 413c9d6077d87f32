#include "experiment/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace assay::host::experiment {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsEachUnitAndTheirSums) {
  EXPECT_EQ(parse_duration("10m"), 10min);
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("2h3m4s5ms"), 2h + 3min + 4s + 5ms);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("0.25s"), 250ms);
  EXPECT_EQ(parse_duration("0s"), 0ms);
}

TEST(Duration, RefusesWhatIsNone) {
  for (const char* text : {"", "10", "m", "10 m", "10min", "-1s", "1m1h", "1m1m", "1.s", ".5s", "1..5s", "0.5ms",
                           "1e3s", "10m ", "9000h", "99999999999999999999h", "1h30"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

TEST(Duration, FromSecondsIsWholeMilliseconds) {
  EXPECT_EQ(duration_from_seconds(0.1), 100ms);
  EXPECT_EQ(duration_from_seconds(600), 10min);
  EXPECT_EQ(duration_from_seconds(0.0001), std::nullopt);
  EXPECT_EQ(duration_from_seconds(-1), std::nullopt);
  EXPECT_EQ(duration_from_seconds(1e300), std::nullopt);
  EXPECT_EQ(duration_from_seconds(std::numeric_limits<double>::quiet_NaN()), std::nullopt);
}

TEST(Duration, TextReadsBack) {
  for (const auto duration : {0ms, 1ms, 999ms, 1000ms, 60'000ms, 5'400'000ms, 7'384'005ms})
    EXPECT_EQ(parse_duration(duration_to_text(duration)), duration) << duration_to_text(duration);
  EXPECT_EQ(duration_to_text(90min), "1h30m");
  EXPECT_EQ(duration_to_text(600'000ms), "10m");
}

TEST(Bytes, ReadsBinaryUnits) {
  EXPECT_EQ(parse_bytes("4GiB"), 4ull << 30);
  EXPECT_EQ(parse_bytes("512MiB"), 512ull << 20);
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536u);
  EXPECT_EQ(parse_bytes("2TiB"), 2ull << 40);
  EXPECT_EQ(parse_bytes("100B"), 100u);
}

TEST(Bytes, RefusesWhatIsNone) {
  for (const char* text : {"", "4", "4GB", "GiB", "4 GiB", "-1B", "0.3B", "4GiB4", "1GiB1MiB", "99999999TiB"})
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
}

TEST(Bytes, TextReadsBack) {
  for (const std::uint64_t bytes :
       {1ull, 1000ull, 1024ull, 4ull << 30, (4ull << 30) + 1, (1ull << 53) + 1, (1ull << 63) - 1})
    EXPECT_EQ(parse_bytes(bytes_to_text(bytes)), bytes) << bytes_to_text(bytes);
  EXPECT_EQ(bytes_to_text(4ull << 30), "4GiB");
  EXPECT_EQ(bytes_to_text(1000), "1000B");
}

}  // namespace
}  // namespace assay::host::experiment
