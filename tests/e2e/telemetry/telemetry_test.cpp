// What a device reports while it is measured, from NVML to record and table: on a GPU that is played by the CPU device
// and the tests' NVML, and on the CPU itself.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Telemetry : public Sandbox {
 protected:
  // The record of an experiment of one case, with the columns of telemetry in its table.
  json run_case(ExperimentText text) {
    text.run +=
        "\n[output]\ncolumns = [\"utilisation_percent\", \"validity\", \"telemetry.power_w.mean\", "
        "\"telemetry.throttle\"]";
    const auto records = records_of(text);
    EXPECT_EQ(records.size(), 1u) << output();
    return records.empty() ? json::object() : records[0];
  }
  json run_decoder(const std::string& device) {
    return run_case({.plugin = "decoder",
                     .params = "d_model = 32\nd_ff = 64\nlayers = 1\nheads = 2\nvocab_size = 50\n"
                               "batch_size = 2\ncontext_length = 16",
                     .measure = "warmup = 1\nsteps = 1000",
                     .device = device});
  }
  void play_gpu(const Variables& variables) {
    for (const auto& [name, value] : variables) set_variable(name, value);
    set_variable("ASSAY_DEVICE_PATH", PLAYED_GPU_FOLDER);
    set_variable("PLAYED_GPU_CPU", CPU_DEVICE);
    set_variable("LD_LIBRARY_PATH", FAKE_NVML_FOLDER);
    set_variable("PLAYED_GPU_CALLS", calls_file().string());
  }
  json run_on_gpu(const Variables& variables) {
    play_gpu(variables);
    return run_decoder("cuda");
  }

  // A program that writes a line into the file of the calls in each step, under 0 as its number.
  static ExperimentText program_on_gpu(const std::string& measure = "warmup = 5\nsteps = 20") {
    return {.plugin = "command",
            .params = R"(command = ["sh", "-c", 'echo assay 1 >&3; while echo step >&3; read kind number <&3; )"
                      R"([ "$kind" != end ]; do echo 0 step >> "$PLAYED_GPU_CALLS"; done']
)",
            .measure = measure,
            .device = "cuda"};
  }
  std::filesystem::path calls_file() const { return folder() / "calls.txt"; }
  // The functions of the device that each process has called, in their order; those of 0 are the program's steps.
  std::vector<std::pair<int, std::string>> calls() const {
    std::istringstream lines(text_of(calls_file()));
    std::vector<std::pair<int, std::string>> found;
    std::pair<int, std::string> call;
    while (lines >> call.first >> call.second) found.push_back(call);
    return found;
  }
  // Those of the process whose calls begin the program's steps.
  std::vector<std::string> calls_of_worker() const {
    const auto all = calls();
    const auto step = std::find_if(all.begin(), all.end(), [](const auto& call) { return call.first == 0; });
    std::vector<std::string> found;
    if (step == all.begin() || step == all.end()) return found;
    for (const auto& [process, function] : all)
      if (process == std::prev(step)->first) found.push_back(function);
    return found;
  }
  // What was called between the first of the program's steps and the last.
  std::vector<std::string> calls_between_steps() const {
    const auto all = calls();
    const auto is_step = [](const auto& call) { return call.first == 0; };
    const auto begin = std::find_if(all.begin(), all.end(), is_step);
    const auto end = std::find_if(all.rbegin(), all.rend(), is_step).base();
    std::vector<std::string> found;
    for (auto call = begin; call < end; ++call)
      if (!is_step(*call)) found.push_back(call->second);
    return found;
  }
  std::string second_line_of_the_table() const {
    std::istringstream lines(text_of(run_folder() / "table.csv"));
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    return line;
  }
  static std::vector<std::string> notes_with(const json& record, const std::string& part) {
    std::vector<std::string> found;
    for (const std::string note : record.at("notes"))
      if (note.find(part) != std::string::npos) found.push_back(note);
    return found;
  }
};

TEST_F(Telemetry, AGpuAtItsPowerCapIsInRecordAndTable) {
  const json record = run_on_gpu({{"FAKE_NVML_REASONS", "0x4"}, {"FAKE_NVML_UTILISATION", "87"}});
  const json& telemetry = record.at("telemetry");
  EXPECT_GE(telemetry.at("samples"), 1);
  EXPECT_EQ(telemetry.at("gpu_utilisation_percent"), json({{"mean", 87.0}, {"min", 87.0}, {"max", 87.0}}));
  EXPECT_EQ(telemetry.at("sm_clock_mhz").at("mean"), 1755.0);
  EXPECT_EQ(telemetry.at("power_w").at("max"), 650.5);
  EXPECT_EQ(telemetry.at("temperature_c").at("mean"), 61.0);
  // Of the 5 J from the window's begin to its end the settling steps have a part: it is asked for nowhere between.
  EXPECT_GT(telemetry.at("energy_j"), 0.0);
  EXPECT_LE(telemetry.at("energy_j"), 5.0 + 1e-9);
  EXPECT_EQ(telemetry.at("throttle"), json({{"power_cap", 1.0}}));
  EXPECT_EQ(telemetry.at("foreign_processes"), 0);
  EXPECT_EQ(record.at("validity").at("verdict"), "power_limited") << record.at("validity");
  EXPECT_PRED2(contains, record.at("validity").at("text"), "at the power cap of 600 W in 100% of the time");
  EXPECT_TRUE(second_line_of_the_table().starts_with("87.0,power_limited,650.5,power_cap 100%,"));
  const json& device = record.at("device");
  EXPECT_EQ(device.at("driver"), "580.95.05");
  EXPECT_EQ(device.at("max_sm_clock_mhz"), 1980.0);
  EXPECT_EQ(device.at("application_sm_clock_mhz"), 1900.0);
  EXPECT_EQ(device.at("power_limit_w"), 600.0);
  EXPECT_TRUE(notes_with(record, "NVML").empty());
}

TEST_F(Telemetry, AHotGpuIsThrottled) {
  const json record = run_on_gpu({{"FAKE_NVML_REASONS", "0x24"}});
  EXPECT_EQ(record.at("telemetry").at("throttle"), json({{"power_cap", 1.0}, {"thermal", 1.0}}));
  EXPECT_EQ(record.at("validity").at("verdict"), "throttled") << record.at("validity");
  EXPECT_PRED2(contains, record.at("validity").at("text"), "thermal held the clocks down in 100% of the time");
}

TEST_F(Telemetry, AGpuWhoseClockFallsIsThrottled) {
  std::string clocks = "1980";
  for (int mhz = 1970; mhz >= 900; mhz -= 10) clocks += "," + std::to_string(mhz);
  const json record = run_on_gpu({{"FAKE_NVML_REASONS", "0x4"}, {"FAKE_NVML_CLOCKS", clocks}});
  EXPECT_EQ(record.at("validity").at("verdict"), "throttled") << record.at("validity");
  EXPECT_PRED2(contains, record.at("validity").at("text"), "the SM clock went from ");
}

TEST_F(Telemetry, AnotherProcessOnTheGpuIsContention) {
  const json record = run_on_gpu({{"FAKE_NVML_PROCESSES", "2"}});
  EXPECT_EQ(record.at("telemetry").at("foreign_processes"), 2);
  EXPECT_EQ(record.at("telemetry").at("foreign_memory_mib"), 2048.0);
  EXPECT_EQ(record.at("validity").at("verdict"), "contended");
  EXPECT_EQ(record.at("validity").at("text"), "2 other processes compute on the device");
}

TEST_F(Telemetry, AnNvmlThatRefusesIsANoteAndNoFailure) {
  const json record = run_on_gpu({{"FAKE_NVML_REFUSE", "nvmlInit_v2"}});
  EXPECT_EQ(record.at("status"), "ok");
  EXPECT_FALSE(record.contains("telemetry"));
  EXPECT_EQ(record.at("validity").at("verdict"), "unknown");
  EXPECT_EQ(notes_with(record, "NVML does not start: Not Supported").size(), 1u) << record.at("notes");
  EXPECT_TRUE(second_line_of_the_table().starts_with(",unknown,,,"));
}

TEST_F(Telemetry, WithMigTheRestIsThereWithOneNote) {
  const json record = run_on_gpu({{"FAKE_NVML_MIG", "1"}});
  EXPECT_FALSE(record.at("telemetry").contains("gpu_utilisation_percent"));
  EXPECT_FALSE(record.at("telemetry").contains("energy_j"));
  EXPECT_TRUE(record.at("telemetry").contains("sm_clock_mhz"));
  EXPECT_EQ(notes_with(record, "MIG is on").size(), 1u) << record.at("notes");
}

// A context of the worker's own beside the program's would take part in each step: on an H100 one of 13 us had 309.
TEST_F(Telemetry, AWorkerWhoseProgramUsesTheGpuMakesNothingOnIt) {
  play_gpu({{"FAKE_NVML_LOOKS", "1"}, {"FAKE_NVML_CHILDREN", "1"}, {"FAKE_NVML_PROCESSES", "1"}});
  const auto records = records_of(program_on_gpu());
  ASSERT_EQ(records.size(), 1u) << output();
  EXPECT_EQ(calls_of_worker(), (std::vector<std::string>{"count", "observe", "info", "info", "close"}));
  EXPECT_EQ(calls_between_steps(), std::vector<std::string>());
  const json& record = records[0];
  EXPECT_EQ(record.at("telemetry").at("sm_clock_mhz").at("mean"), 1755.0);
  EXPECT_EQ(record.at("telemetry").at("foreign_processes"), 1);
  EXPECT_EQ(record.at("memory").at("device_used_mib"), 2048.0) << "the program's alone, by NVML's list of processes";
  EXPECT_FALSE(record.at("memory").contains("unexplained_mib"));
  EXPECT_EQ(record.at("device").at("bus_address"), "0000:18:00.0");
  EXPECT_TRUE(notes_with(record, "NVML").empty()) << record.at("notes");
}

TEST_F(Telemetry, ADeviceOfBeforeObservationIsOpenedAndLeftAlone) {
  play_gpu({{"PLAYED_GPU_OLD", "1"}});
  const auto records = records_of(program_on_gpu());
  ASSERT_EQ(records.size(), 1u) << output();
  EXPECT_EQ(calls_of_worker(), (std::vector<std::string>{"count", "open", "info", "info", "close"}));
  EXPECT_EQ(calls_between_steps(), std::vector<std::string>());
}

TEST_F(Telemetry, TheCallsOfAWorkerThatStepsItselfAreSeen) {
  run_on_gpu({});
  std::vector<std::string> functions;
  for (const auto& call : calls()) functions.push_back(call.second);
  for (const char* function : {"open", "stream_create", "event_record", "stream_synchronize", "event_elapsed_ns"})
    EXPECT_TRUE(std::find(functions.begin(), functions.end(), function) != functions.end()) << function;
}

TEST_F(Telemetry, CachesOfAGpuOnWhichAProgramWorksAreNotEmptied) {
  play_gpu({});
  const auto records = records_of(program_on_gpu("warmup = 1\nsteps = 3\ncold_cache = true"), 1);
  ASSERT_EQ(records.size(), 1u) << output();
  EXPECT_EQ(records[0].at("status"), "unsupported");
  EXPECT_PRED2(contains, records[0].at("reason"), "the steps of 'command' run in other processes");
}

TEST_F(Telemetry, OfAProgramNoProfileIsMadeOfTheWorker) {
  play_gpu({{"FAKE_NVML_LOOKS", "1"}});
  ExperimentText text = program_on_gpu();
  text.run += "\n[profile]\nkernels = true\nnvtx = true";
  const auto records = records_of(text);
  ASSERT_EQ(records.size(), 1u) << output();
  EXPECT_EQ(notes_with(records[0], "the steps are those of other processes").size(), 1u) << records[0].at("notes");
  EXPECT_EQ(calls_between_steps(), std::vector<std::string>());
}

TEST_F(Telemetry, OfTheCpuItIsTheShareOfItsProcessors) {
  const json record = run_decoder("cpu");
  const json& utilisation = record.at("telemetry").at("cpu_utilisation_percent");
  EXPECT_GT(utilisation.at("mean"), 0.0);
  EXPECT_LE(utilisation.at("mean"), 100.0);
  EXPECT_FALSE(record.at("telemetry").contains("power_w"));
  EXPECT_FALSE(record.at("device").contains("driver"));
  const std::string verdict = record.at("validity").at("verdict");
  EXPECT_TRUE(verdict == "valid" || verdict == "contended" || verdict == "unknown") << verdict;
  EXPECT_TRUE(notes_with(record, "telemetry").empty()) << record.at("notes");
}

TEST_F(Telemetry, OfSeveralRanksEachHasItsOwn) {
  const json record = run_case(
      {.plugin = "all_reduce", .params = "size_bytes = 4000", .measure = "warmup = 1\nsteps = 50", .run = "ranks = 2"});
  ASSERT_EQ(record.at("by_rank").size(), 2u);
  double sum = 0;
  for (const json& rank : record.at("by_rank")) {
    sum += rank.at("telemetry").at("cpu_utilisation_percent").get<double>();
    EXPECT_TRUE(rank.contains("validity"));
  }
  EXPECT_NEAR(record.at("telemetry").at("cpu_utilisation_percent").at("mean"), sum / 2, 1e-9);
  EXPECT_TRUE(record.at("validity").contains("verdict"));
}

}  // namespace
}  // namespace assay::test
