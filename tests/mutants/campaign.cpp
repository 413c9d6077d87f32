#include "campaign.hpp"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
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

void take_record(Trial& trial, const fs::path& results, const fs::path& host_output) {
  trial.status = "no record";
  trial.said = test::text_of(host_output);
  std::error_code error;
  for (fs::recursive_directory_iterator i(results, error), end; !error && i != end; i.increment(error)) {
    if (i->path().filename() != "cases.jsonl") continue;
    const auto record = nlohmann::json::parse(test::text_of(i->path()), nullptr, false);
    if (record.is_discarded()) return;
    trial.status = record.at("status");
    const auto verify = record.value("verify", nlohmann::json());  // absent where the case did not come so far
    const bool verified = verify.is_object() && verify.contains("text") && verify.at("text").is_string();
    const auto reason = record.value("reason", nlohmann::json());
    trial.said = verified && !verify.at("text").get<std::string>().empty() ? verify.at("text").get<std::string>()
                 : reason.is_string()                                      ? reason.get<std::string>()
                                                                           : "";
  }
}

void run_trial(Trial& trial, const test::Sandbox& sandbox, const std::string& name) {
  const fs::path folder = sandbox.folder() / name;
  fs::create_directory(folder);
  write(folder / "x.toml", trial.tried->experiment());
  if (!trial.tried->inputs.empty()) write(folder / "inputs.safetensors", trial.tried->inputs);
  std::string counts(all_mutants().size() * sizeof(std::uint64_t), '\0');
  write(folder / "counts", counts);
  const std::string mutant = trial.mutant == Trial::none ? "" : std::string(all_mutants()[trial.mutant].name);
  std::vector<std::string> arguments{"run", name + "/x.toml", "--output", name + "/out"};
  test::Variables variables{{"ASSAY_MUTANT", mutant}, {"ASSAY_MUTANT_COUNTS", (folder / "counts").string()}};
  if (trial.tried->of_sources) arguments.insert(arguments.end(), {"--plugin-path", MUTANT_PLUGIN_FOLDER});
  if (!trial.tried->of_sources || trial.tried->device != "cpu")
    variables["ASSAY_DEVICE_PATH"] = folder_of(trial.tried->device);
  if (!trial.tried->of_sources) variables["ASSAY_COMM_PATH"] = MUTANT_COMM_FOLDER;
  {
    test::HostProcess host = sandbox.start(arguments, variables, name + "/output.txt");
    host.wait();
  }
  take_record(trial, folder / "out", folder / "output.txt");
  counts = test::text_of(folder / "counts");
  trial.reached.resize(all_mutants().size());
  std::memcpy(trial.reached.data(), counts.data(), counts.size());
  fs::remove_all(folder);
}

}  // namespace

void run_trials(std::vector<Trial>& trials, const test::Sandbox& sandbox) {
  static std::atomic<int> campaigns{0};
  const std::string prefix = "trial-" + std::to_string(campaigns++) + "-";
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < trials.size(); i = next++)
      run_trial(trials[i], sandbox, prefix + std::to_string(i));
  };
  std::vector<std::thread> threads;
  // One more than there are processors: a run waits a little for its own processes.
  for (unsigned i = 0; i < std::thread::hardware_concurrency() + 1; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace assay::mutants
