// A temporary folder with an experiment file in it, in which the host is run: the one way in which tests start the
// executable. What it leaves behind, a process or a finding of a sanitizer, fails the test.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/host_process.hpp"
#include "support/temporary_folder.hpp"

namespace assay::test {

// What differs between the experiments of these tests: TOML text for the table of each name. That of [run] is the last
// one, and may go on with further tables.
struct ExperimentText {
  std::string plugin = "";
  std::string name = "x";
  std::string params = "";  // of [workload.params]
  std::string measure = "warmup = 1\nsteps = 3\ntimeout = \"60s\"";
  std::string run = "";
  std::string sweep = "";
  std::string device = "cpu";
};

struct RunResult {
  HostExit exit;
  std::string output;  // standard output and error
};

using Variables = std::map<std::string, std::string>;

std::string text_of(const std::filesystem::path& file);
bool contains(const std::string& text, const std::string& part);
double metric(const nlohmann::json& record, const char* name);

class Sandbox : public testing::Test {
 public:
  // Starts the host in the folder. `variables` are set in its environment, beside those of this process.
  HostProcess start(const std::vector<std::string>& arguments, const Variables& variables = {},
                    const std::string& output_name = "output.txt") const;
  std::filesystem::path folder() const { return folder_.path(); }

 protected:
  // `plugin_folder`: searched before the build's own; none: that alone.
  explicit Sandbox(std::filesystem::path plugin_folder = {});
  ~Sandbox() override;

  // Set for every host that is started from here on.
  void set_variable(const std::string& name, const std::string& value) { variables_[name] = value; }

  void write_experiment(const ExperimentText& text);
  std::vector<std::string> run_arguments(std::vector<std::string> more = {}) const;
  // Runs the host to its end. Fails the test when it does not end, dies of a signal, or leaves a process behind.
  RunResult run(const std::vector<std::string>& arguments) const;
  RunResult run_experiment(const ExperimentText& text, std::vector<std::string> more = {});
  // Runs an experiment with no earlier run beside it: the folders of one second have no order.
  RunResult run_alone(const ExperimentText& text, std::vector<std::string> more = {});
  // The records of an experiment that is run alone, and must end with this code.
  std::vector<nlohmann::json> records_of(const ExperimentText& text, int expected_code = 0,
                                         std::vector<std::string> more = {});
  std::string output() const { return text_of(output_file()); }
  std::filesystem::path output_file() const { return folder() / "output.txt"; }

  // The folders of the runs of the experiment that was written last, or of that of this name, the oldest first.
  std::vector<std::filesystem::path> run_folders() const { return run_folders(name_); }
  std::vector<std::filesystem::path> run_folders(const std::string& name) const;
  // The newest of them; fails the test when there is none.
  std::filesystem::path run_folder() const { return run_folder(name_); }
  std::filesystem::path run_folder(const std::string& name) const;
  // The complete lines of the newest run's cases.jsonl; none while there is no such file.
  std::vector<std::string> case_lines() const { return case_lines(name_); }
  std::vector<std::string> case_lines(const std::string& name) const;
  // Those, parsed. A line that is no JSON fails the test.
  std::vector<nlohmann::json> cases() const { return cases(name_); }
  std::vector<nlohmann::json> cases(const std::string& name) const;
  // What the sanitizers of a sanitized build have found so far, in the host and all that it has started. It is taken
  // away: what is left at the end of a test fails it.
  std::vector<std::string> take_findings() const;
  // Waits until `reached()`; false when it has not come after two minutes.
  static bool wait_until(const std::function<bool()>& reached);

 private:
  std::filesystem::path plugin_folder_;
  TemporaryFolder folder_;
  Variables variables_;
  std::string name_;
};

}  // namespace assay::test
