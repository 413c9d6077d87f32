#include "experiment/device_description.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "record/device_peaks.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::experiment {
namespace {

namespace fs = std::filesystem;

std::string refusal(const std::string& text) {
  const assay::test::TemporaryFolder folder;
  std::ofstream(folder.path() / "d.toml") << text;
  try {
    read_device_file(folder.path() / "d.toml");
  } catch (const DeviceFileError& e) {
    const std::string said = e.what();
    return said.substr(said.find("d.toml"));
  }
  return "";
}

constexpr const char* least = "kind = \"cuda\"\nname = \"X\"\nmemory_total_mib = 1000\ncompute_units = 2\n";

TEST(DeviceFile, IsReadWithItsUnits) {
  const assay::test::TemporaryFolder folder;
  std::ofstream(folder.path() / "d.toml") << least << "[peak]\nfp16_tflop_per_s = 100\nmemory_gbytes_per_s = 50\n"
                                          << "[link]\ngbytes_per_s = 25\n[process]\ncontext_mib = 0\n";
  const DeviceDescription device = read_device_file(folder.path() / "d.toml");
  EXPECT_EQ(device.flops_per_s("fp16"), 1e14);
  EXPECT_EQ(device.flops_per_s("bf16"), 1e14) << "as fast where the file does not say otherwise";
  EXPECT_EQ(device.flops_per_s("fp8"), 0);
  EXPECT_EQ(device.memory_gbytes_per_s, 50);
  EXPECT_EQ(device.link_gbytes_per_s, 25);
  EXPECT_EQ(device.context_mib, 0);
  EXPECT_FALSE(device.communicator_mib);
}

// What nobody has measured is not known, and a probe may find more than is read.
TEST(DeviceFile, HasWhatProbesFound) {
  const assay::test::TemporaryFolder folder;
  const std::string head = std::string(least) + "[peak]\nmemory_gbytes_per_s = 50\n";
  std::ofstream(folder.path() / "bare.toml") << head;
  const DeviceFacts nothing = read_device_file(folder.path() / "bare.toml").facts;
  EXPECT_FALSE(nothing.graph_launch_us || nothing.event_least_gap_us || nothing.power_average_ms);
  EXPECT_FALSE(nothing.captured_event_us(1));

  std::ofstream(folder.path() / "d.toml") << head << "[event]\nleast_gap_us = 1.25\ncaptured_us = 2.5\ncaptured_many_us"
                                          << " = 3.5\n[attention]\nforward_depths = \"8, 16\"\n";
  const DeviceFacts facts = read_device_file(folder.path() / "d.toml").facts;
  EXPECT_EQ(facts.event_least_gap_us, 1.25);
  EXPECT_EQ(facts.captured_event_us(10), 2.5);
  EXPECT_EQ(facts.captured_event_us(1000), 3.5);
  EXPECT_NE(refusal(head + "[event]\ncaptured_us = -1\n").find("event.captured_us: expected a number"),
            std::string::npos);
}

TEST(DeviceFile, FiguresOfProbesAreNoSlipsAndNothingAbsurd) {
  const std::string head = std::string(least) + "[peak]\nmemory_gbytes_per_s = 50\n";
  EXPECT_EQ(refusal(head + "[event]\ngap_us = 2\nresolution_ns = 32\n"), "");
  EXPECT_NE(refusal(head + "[event]\ncaptured_as = 2\n").find("d.toml:8:"), std::string::npos);
  EXPECT_NE(refusal(head + "[event]\ncaptured_as = 2\n").find("did you mean 'captured_us'?"), std::string::npos);
  for (const char* line :
       {"captured_us = nan", "captured_us = 1e10", "least_gap_us = -1", "gap_us = nan", "gap_us = inf"})
    EXPECT_NE(refusal(head + "[event]\n" + line + "\n").find("expected a number"), std::string::npos) << line;
}

// Nobody could measure anything because of a file of another device.
TEST(DeviceFile, OneThatIsWrongIsLeftOutAndNamed) {
  const assay::test::TemporaryFolder folder;
  std::ofstream(folder.path() / "mine.toml") << "kind = \"cuda\"\nname = 3\n";
  std::ofstream(folder.path() / "x.toml") << least << "[peak]\nmemory_gbytes_per_s = 50\n[graph]\nlaunch_us = 5\n";
  const FoundFacts found = facts_of_device("cuda", "X", folder.path());
  EXPECT_EQ(found.facts.graph_launch_us, 5);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("mine.toml:2:8: name: expected a text"), std::string::npos) << found.notes[0];
}

TEST(DeviceFile, MistakesHaveTheirPlace) {
  EXPECT_NE(refusal("kind = ").find("d.toml:1:"), std::string::npos);
  EXPECT_NE(refusal("kind = \"tpu\"\n").find("d.toml:1:8: kind: is 'tpu'; expected cpu or cuda"), std::string::npos);
  EXPECT_NE(refusal("kind = \"cuda\"\nname = \"X\"\n").find("memory_total_mib: is missing"), std::string::npos);
  const std::string head(least);
  EXPECT_NE(refusal(head).find("peak.memory_gbytes_per_s: is missing"), std::string::npos);
  EXPECT_NE(refusal(head + "[peak]\nmemory_gbytes_per_s = -1\n").find("expected a number from 1e-06 to 1e12"),
            std::string::npos);
  EXPECT_NE(refusal(head + "[peak]\nmemory_gbytes_per_s = 1\nfp61_tflop_per_s = 1\n").find("d.toml:7:"),
            std::string::npos);
  EXPECT_NE(refusal(head + "memory_total_mb = 3\n[peak]\nmemory_gbytes_per_s = 1\n").find("memory_total_mib"),
            std::string::npos);
  // Figures from which nothing can be reckoned, and what a terminal would obey.
  for (const char* number : {"inf", "nan", "1e-300", "1e300", "0"})
    EXPECT_NE(refusal(head + "[peak]\nmemory_gbytes_per_s = " + number + "\n").find("d.toml:6:23: "), std::string::npos)
        << number;
  EXPECT_NE(refusal("kind = \"cuda\"\nname = \"X\"\nmemory_total_mib = 1000\ncompute_units = 2.5\n")
                .find("compute_units: expected a whole number"),
            std::string::npos);
  EXPECT_NE(refusal("kind = \"cuda\"\nname = \"X\\u001b[2J\"\n").find("name: expected a text without control"),
            std::string::npos);
  EXPECT_THROW(read_device_file("/nowhere/d.toml"), DeviceFileError);
}

// The files that come with assay: they are read, each figure has a source, and their peaks are those that records are
// compared with.
TEST(DeviceFile, ThoseThatComeAlongAgreeWithTheTableOfPeaks) {
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(DEVICE_FILES)) {
    SCOPED_TRACE(entry.path());
    ++files;
    const DeviceDescription device = read_device_file(entry.path());
    for (std::size_t i = 0; i < arithmetics.size(); ++i) {
      const auto stated = record::stated_peak(device.name, arithmetics[i]);
      ASSERT_TRUE(stated);
      EXPECT_DOUBLE_EQ(device.tflop_per_s[i] * 1e3, stated->gflop_per_s.value_or(0)) << arithmetics[i];
      EXPECT_EQ(device.memory_gbytes_per_s, stated->gbytes_per_s);
    }
    std::ifstream text(entry.path());
    bool is_source = false;
    std::string table, sources;
    std::vector<std::string> keys;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with('['))
        table = line == "[source]" ? "" : line.substr(1, line.find(']') - 1) + ".", is_source = line == "[source]";
      const std::size_t equals = line.find(" = ");
      if (equals == std::string::npos || line.starts_with('#')) continue;
      if (is_source)
        sources += "|" + line.substr(0, equals) + "|";
      else
        keys.push_back(table + line.substr(0, equals));
    }
    for (const std::string& key : keys)
      EXPECT_TRUE(sources.find("|" + key + "|") != std::string::npos ||
                  sources.find("|\"" + key + "\"|") != std::string::npos ||
                  sources.find("|" + key.substr(0, key.find('.')) + "|") != std::string::npos)  // of a probe's table
          << key << " has no source";
  }
  EXPECT_EQ(files, 6u);
}

}  // namespace
}  // namespace assay::host::experiment
