// Ranks whose files of algorithms say different things run one choice, unless a setting keeps them from sharing it.
#include <fstream>
#include <regex>

#include "ranks_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class SharedTuning : public RanksSandbox {
 protected:
  SharedTuning() {
    set_variable("OMP_NUM_THREADS", "1");
    set_variable("ASSAY_MATMUL_TUNE", "1");
  }
  static ExperimentText text() {
    return {.plugin = "ddp",
            .params = "size = \"tiny\"\nvocab_size = 500\nbatch_size = 4\ncontext_length = 128",
            .measure = "warmup = 0\nsteps = 1\ntimeout = \"100s\"",
            .run = "ranks = 2"};
  }
  // A refusal names the file and the conditions for which it is.
  void learn_conditions() {
    set_variable("ASSAY_ALGORITHMS", "fixed");
    set_variable("ASSAY_CACHE_DIR", (folder() / "none").string());
    const std::vector<json> records = records_of(text(), 1);
    set_variable("ASSAY_ALGORITHMS", "");
    ASSERT_EQ(records.size(), 1u);
    const std::string reason = records[0].value("reason", "");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(reason, found,
                                  std::regex(R"(but \S*/([^/ ]+\.json) has no .*\(device (.*), (oneDNN [0-9.]+), )"
                                             R"(driver none, (.*)\); run the case)")))
        << reason;
    file_ = found[1];
    conditions_ = {{"format", 2},      {"device", found[2]}, {"library", found[3]},
                   {"driver", "none"}, {"limits", found[4]}, {"algorithms", json::object()}};
  }
  // The rule's choice of each product that is worth timing, by the product.
  std::map<std::string, std::string> choices_of_the_rule() {
    set_variable("ASSAY_MATMUL_TUNE", "0");
    const std::vector<json> records = records_of(text());
    set_variable("ASSAY_MATMUL_TUNE", "1");
    std::map<std::string, std::string> choices;
    const std::regex extents(R"(\[(\d+)x(\d+)\]\*\[\d+x(\d+)\])");
    for (const auto& [product, algorithm] : records.at(0)["algorithms"].items()) {
      std::smatch found;
      const std::string name = algorithm;
      if (!std::regex_search(product, found, extents) || !name.starts_with("oneDNN ")) continue;
      if (std::stoll(found[1]) * std::stoll(found[2]) * std::stoll(found[3]) >= 1 << 24)
        choices[product] = name.substr(std::string("oneDNN ").size());
    }
    return choices;
  }
  // A folder in which a file has these.
  std::string folder_with(const std::string& name, const std::map<std::string, std::string>& choices) {
    json document = conditions_;
    for (const auto& [product, algorithm] : choices)
      document["algorithms"][product] = {{"algorithm", algorithm}, {"microseconds", 100.0}};
    fs::create_directories(folder() / name);
    std::ofstream(folder() / name / file_) << document.dump(1);
    return (folder() / name).string();
  }
  json record_of_launch(const std::string& name, const std::string& first, const std::string& second) {
    ExperimentText named = text();
    named.name = name;
    write_experiment(named);
    HeldPort port;
    Launch launch(*this, run_arguments(), 2, port.number());
    launch.set(0, "ASSAY_CACHE_DIR", first);
    launch.set(1, "ASSAY_CACHE_DIR", second);
    port.release();
    launch.start_all();
    EXPECT_EQ(launch.wait(0).code, 0) << launch.output(0);
    EXPECT_EQ(launch.wait(1).code, 0) << launch.output(1);
    const std::vector<json> records = cases();
    EXPECT_EQ(records.size(), 1u);
    return records.empty() ? json::object() : records[0];
  }
  static bool says_that_they_differ(const json& record) {
    for (const std::string note : record.value("notes", json::array()))
      if (contains(note, "rank 1 has chosen other algorithms than rank 0")) return true;
    return false;
  }

  std::string file_;
  json conditions_;
};

TEST_F(SharedTuning, RanksWithDifferentFilesRunOneChoice) {
  learn_conditions();
  if (HasFatalFailure()) return;
  const std::map<std::string, std::string> rule = choices_of_the_rule();
  ASSERT_FALSE(rule.empty());
  std::map<std::string, std::string> other = rule;
  for (auto& [product, algorithm] : other)
    if (!algorithm.starts_with("gemm")) algorithm = "gemm:jit";
  if (other == rule) GTEST_SKIP() << "the rule takes oneDNN's packing GEMM for every product here";
  const std::string first = folder_with("first", rule), second = folder_with("second", other);

  const json shared = record_of_launch("shared", first, second);
  EXPECT_EQ(shared["status"], "ok") << shared.dump(2);
  EXPECT_FALSE(says_that_they_differ(shared)) << shared["notes"];

  set_variable("ASSAY_SHARED_TUNING", "0");
  const json separate = record_of_launch("separate", first, second);
  EXPECT_EQ(separate["status"], "ok") << separate.dump(2);
  EXPECT_TRUE(says_that_they_differ(separate)) << separate["notes"];
}

}  // namespace
}  // namespace assay::test
