#include "worker/part_times.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace assay::host::worker {
namespace {

std::vector<std::string> names_of(const record::Named<double>& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) names.push_back(part.first);
  return names;
}

TEST(PartTimes, APartThatBeginsTwiceIsOne) {
  PartTimes parts;
  parts.begin("data");
  EXPECT_EQ(parts.open_name(), "data");
  parts.begin("optimizer");
  parts.begin("data");
  EXPECT_EQ(names_of(parts.take()), (std::vector<std::string>{"data", "optimizer"}));
  EXPECT_TRUE(parts.take().empty());
}

TEST(PartTimes, WhatIsOutsideOfAPartIsInNone) {
  PartTimes parts;
  parts.begin("data");
  parts.begin("");
  EXPECT_EQ(parts.open_name(), "");
  const auto before = parts.take();
  parts.begin("data");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  parts.end();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto after = parts.take();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_GE(after[0].second, 0.002);
  EXPECT_EQ(before.size(), 1u);
}

TEST(PartTimes, ANameIsOneOfAColumn) {
  EXPECT_TRUE(PartTimes::is_name("float64_model"));
  for (const char* name : {"", "Data", "a b", "a.b", "a\n"}) EXPECT_FALSE(PartTimes::is_name(name)) << name;
  EXPECT_TRUE(PartTimes::is_name(std::string(PartTimes::most_name_bytes, 'a')));
  EXPECT_FALSE(PartTimes::is_name(std::string(PartTimes::most_name_bytes + 1, 'a')));
}

TEST(PartTimes, OfTooManyPartsTheFirstAreKept) {
  PartTimes parts;
  for (std::size_t i = 0; i <= PartTimes::most_names; ++i) parts.begin("part_" + std::to_string(i));
  EXPECT_EQ(parts.open_name(), "part_64");
  parts.begin("part_0");
  EXPECT_EQ(parts.take().size(), PartTimes::most_names);
}

}  // namespace
}  // namespace assay::host::worker
