#include "campaign.hpp"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#ifndef MUTANT_CUDA_FOLDER  // a build without the CUDA device
#define MUTANT_CUDA_FOLDER ""
#endif

namespace assay::mutants {
namespace {

namespace fs = std::filesystem;

// The mutants' library of a device.
const char* folder_of(const std::string& device) {
  return device == "cuda" ? MUTANT_CUDA_FOLDER : device == "fp16" ? MUTANT_FP16_FOLDER : MUTANT_DEVICE_FOLDER;
}

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }

// Trials of one case, next to each other: one run, of which each is a repeat.
using Repeats = std::span<Trial>;

// Of records that stand one in a line.
std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file, std::ios::binary);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void take_record(Trial& trial, const nlohmann::json& record) {
  trial.status = record.at("status");
  const auto verify = record.value("verify", nlohmann::json());  // absent where the case did not come so far
  const bool verified = verify.is_object() && verify.contains("text") && verify.at("text").is_string();
  const auto reason = record.value("reason", nlohmann::json());
  trial.said = verified && !verify.at("text").get<std::string>().empty() ? verify.at("text").get<std::string>()
               : reason.is_string()                                      ? reason.get<std::string>()
                                                                         : "";
}

// A repeat whose place another record takes has none: it could be the mutant of another.
void take_records(Repeats trials, const fs::path& run, const fs::path& host_output) {
  const std::vector<std::string> lines = lines_of(run / "cases.jsonl");
  for (std::size_t i = 0; i < trials.size(); ++i) {
    trials[i].status = "no record";
    trials[i].said = test::text_of(host_output);
    if (i >= lines.size()) continue;
    const auto record = nlohmann::json::parse(lines[i], nullptr, false);
    if (record.is_discarded() || record.value("repeat", std::size_t{1}) != i + 1) continue;
    take_record(trials[i], record);
  }
}

void run_repeats(Repeats trials, const test::Sandbox& sandbox, const std::string& name) {
  const fs::path folder = sandbox.folder() / name;
  fs::create_directory(folder);
  const TriedCase& tried = *trials.front().tried;
  write(folder / "x.toml", tried.experiment() + "repeat = " + std::to_string(trials.size()) + "\n");
  if (!tried.inputs.empty()) write(folder / "inputs.safetensors", tried.inputs);
  std::string counts(all_mutants().size() * sizeof(std::uint64_t), '\0');
  std::string mutants;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    write(folder / ("counts" + std::to_string(i)), counts);
    if (trials[i].mutant != Trial::none) mutants += std::string(all_mutants()[trials[i].mutant].name) + " ";
  }
  const fs::path run = folder / "out/x/latest";
  std::vector<std::string> arguments{"run", name + "/x.toml", "--output", name + "/out"};
  test::Variables variables{{"ASSAY_MUTANT", mutants},
                            {"ASSAY_MUTANT_RUN", run.string()},
                            {"ASSAY_MUTANT_COUNTS", (folder / "counts").string()}};
  if (tried.of_sources) arguments.insert(arguments.end(), {"--plugin-path", MUTANT_PLUGIN_FOLDER});
  if (!tried.of_sources || tried.device != "cpu") variables["ASSAY_DEVICE_PATH"] = folder_of(tried.device);
  if (!tried.of_sources) variables["ASSAY_COMM_PATH"] = MUTANT_COMM_FOLDER;
  {
    test::HostProcess host = sandbox.start(arguments, variables, name + "/output.txt");
    host.wait();
  }
  take_records(trials, run, folder / "output.txt");
  for (std::size_t i = 0; i < trials.size(); ++i) {
    counts = test::text_of(folder / ("counts" + std::to_string(i)));
    trials[i].reached.resize(all_mutants().size());
    std::memcpy(trials[i].reached.data(), counts.data(), counts.size());
  }
  fs::remove_all(folder);
}

// At most so many trials are one run. Longer ones would leave a processor idle at the end.
constexpr std::size_t repeats_max = 16;

std::vector<Repeats> runs_of(std::vector<Trial>& trials) {
  std::vector<Repeats> runs;
  for (std::size_t begin = 0, end; begin < trials.size(); begin = end) {
    for (end = begin + 1; end < trials.size() && end - begin < repeats_max; ++end)
      if (trials[end].tried != trials[begin].tried) break;
    runs.push_back(Repeats(trials).subspan(begin, end - begin));
  }
  return runs;
}

}  // namespace

void run_trials(std::vector<Trial>& trials, const test::Sandbox& sandbox) {
  static std::atomic<int> campaigns{0};
  const std::string prefix = "run-" + std::to_string(campaigns++) + "-";
  const std::vector<Repeats> runs = runs_of(trials);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) run_repeats(runs[i], sandbox, prefix + std::to_string(i));
  };
  std::vector<std::thread> threads;
  // One more than there are processors: a run waits a little for its own processes.
  for (unsigned i = 0; i < std::thread::hardware_concurrency() + 1; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace assay::mutants
