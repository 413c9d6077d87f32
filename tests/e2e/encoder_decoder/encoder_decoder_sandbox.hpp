// A sandbox with a model of one layer each, small enough to train in a moment.
#pragma once
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {

class EncoderDecoderSandbox : public Sandbox {
 protected:
  EncoderDecoderSandbox() : Sandbox(ENCODER_DECODER_PLUGINS) {}

  // Batches of 4 samples of 8 tokens. Without a warm-up there are as many steps in all, however long one takes: losses
  // are compared.
  static ExperimentText small(const std::string& params, const std::string& sweep = "", const std::string& run = "") {
    return {.plugin = "encoder_decoder",
            .params =
                "d_model = 32\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nd_ff = 64\n"
                "sequence_length = 8\nvocab_size = 64\nbatch_size = 4\n" +
                params,
            .measure = "warmup = 0\nsteps = 3\ntimeout = \"60s\"",
            .run = "threads = 1\n" + run,
            .sweep = sweep};
  }
  static constexpr std::size_t sample_bytes = 2 * 8 * 8;

  // The records of an experiment all of whose cases must end well.
  std::vector<nlohmann::json> run_well(const ExperimentText& text) {
    std::vector<nlohmann::json> records = records_of(text);
    EXPECT_FALSE(records.empty()) << "no case was run";
    for (const nlohmann::json& record : records) {
      EXPECT_EQ(record["status"], "ok") << record["reason"];
      if (record["status"] == "ok") {
        EXPECT_EQ(record["verify"]["status"], "ok") << record["verify"];
      }
    }
    return records;
  }
  // The record of an experiment of one case that must not.
  nlohmann::json run_badly(const ExperimentText& text, int expected_code = 1) {
    const std::vector<nlohmann::json> records = records_of(text, expected_code);
    EXPECT_EQ(records.size(), 1u);
    if (records.empty()) return {{"status", ""}, {"reason", ""}};
    EXPECT_NE(records[0]["status"], "ok");
    EXPECT_FALSE(records[0].contains("phases")) << "times of a case that failed";
    return records[0];
  }
  std::string case_log(const std::string& name = "case-0001.log") const {
    return text_of(run_folder() / "logs" / name);
  }
  nlohmann::json summary() const {
    for (const auto& entry : std::filesystem::directory_iterator(run_folder()))
      if (entry.path().filename().string().starts_with("bench_")) return nlohmann::json::parse(text_of(entry.path()));
    ADD_FAILURE() << "no summary";
    return {};
  }
  // What lies in a folder of the sandbox.
  std::set<std::string> names_in(const std::string& name) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder() / name))
      names.insert(entry.path().filename().string());
    return names;
  }
};

}  // namespace assay::test
