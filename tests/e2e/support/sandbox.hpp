// A temporary folder with an experiment file in it, in which the host is run.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/host_process.hpp"

namespace assay::test {

// What differs between the experiments of these tests: TOML text for the table of each name.
struct ExperimentText {
  std::string plugin = "";
  std::string name = "x";
  std::string params = "";  // of [workload.params]
  std::string measure = "warmup = 1\nsteps = 3\ntimeout = \"60s\"";
  std::string run = "";
  std::string sweep = "";
};

struct RunResult {
  HostExit exit;
  std::string output;  // standard output and error
};

std::string text_of(const std::filesystem::path& file);
bool contains(const std::string& text, const std::string& part);

class Sandbox : public testing::Test {
 protected:
  explicit Sandbox(std::filesystem::path plugin_folder);
  ~Sandbox() override;

  void write_experiment(const ExperimentText& text);
  std::vector<std::string> run_arguments(std::vector<std::string> more = {}) const;
  // Runs the host to its end. Fails the test when it does not end, dies of a signal, or leaves a process behind.
  RunResult run(const std::vector<std::string>& arguments) const;
  RunResult run_experiment(const ExperimentText& text, std::vector<std::string> more = {});
  std::string output() const { return text_of(output_file()); }
  std::filesystem::path output_file() const { return folder_ / "output.txt"; }
  std::filesystem::path folder() const { return folder_; }

  // The folders of the runs of the experiment that was written last, the oldest first.
  std::vector<std::filesystem::path> run_folders() const;
  // The complete lines of the newest run's cases.jsonl; none while there is no such file.
  std::vector<std::string> case_lines() const;
  // Those, parsed. A line that is no JSON fails the test.
  std::vector<nlohmann::json> cases() const;
  // Waits until `reached()`; false when it has not come after two minutes.
  static bool wait_until(const std::function<bool()>& reached);

 private:
  std::filesystem::path plugin_folder_, folder_;
  std::string name_;
};

}  // namespace assay::test
