// A small data set in its own folder, and what tests ask of one.
#pragma once
#include <gtest/gtest.h>
#include <assay/data/shards.hpp>
#include <assay/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace assay::data {

class DatasetTest : public testing::Test {
 protected:
  std::filesystem::path folder() const { return temporary_ / "set"; }
  std::filesystem::path file(const std::string& name) const { return folder() / name; }
  std::unique_ptr<ShardedSamples> open(const DatasetParameters& p, const Progress& progress = {}) const {
    return ShardedSamples::open_or_generate(folder().string(), p, progress);
  }
  std::unique_ptr<ShardedSamples> open() const { return open(parameters); }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) found.insert(entry.path().filename());
    return found;
  }
  static std::string text(const std::filesystem::path& path) {
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    return content.str();
  }
  static void write(const std::filesystem::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  void replace_in_manifest(const std::string& what, const std::string& by) const {
    std::string content = text(file("_manifest.json"));
    const std::size_t at = content.find(what);
    ASSERT_NE(at, std::string::npos) << what << " is not in\n" << content;
    write(file("_manifest.json"), content.replace(at, what.size(), by));
  }

  // The samples are those that this seed makes in memory.
  static void expect_sound(const ShardedSamples& set, const DatasetParameters& p) {
    ASSERT_EQ(set.samples(), p.samples);
    const SyntheticSamples made(p.shape, p.samples, p.seed);
    const auto tokens = static_cast<std::size_t>(p.shape.tokens() * p.samples);
    std::vector<std::int64_t> expected(tokens);
    std::vector<std::int64_t> found(tokens);
    made.read(0, expected);
    set.read(0, found);
    EXPECT_TRUE(expected == found);
  }

  // What opening says, which must be refused with this status.
  std::string refusal(assay_status status, const DatasetParameters& p) const {
    try {
      open(p);
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), status) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "was opened";
    return "";
  }
  std::string refusal(assay_status status = ASSAY_INVALID_ARGUMENT) const { return refusal(status, parameters); }

  test::TemporaryFolder temporary_;
  DatasetParameters parameters{{16, 100}, 1000, 42, 3};
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace assay::data
