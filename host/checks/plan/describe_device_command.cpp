#include "plan/describe_device_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "common/child.hpp"
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/usage_error.hpp"
#include "experiment/resolved.hpp"
#include "plan/device_probe.hpp"
#include "plan/experiment_plan.hpp"
#include "plugin/device_words.hpp"
#include "plugin/search.hpp"

namespace assay::host::plan {
namespace {

// What is not free once the device is open, read in a separate process: the driver's part of every process.
double held_when_open_mib(const std::string& kind) {
  const ChildEnd end = run_in_child([&](const Send& send) {
    const plugin::OpenDevice device(plugin::find_device(kind), 0);
    const assay_device_info info = device.info();
    send(fmt::format("{}", info.memory_total_bytes - std::min(info.memory_total_bytes, info.memory_free_bytes)));
  });
  if (!end.is_clean())
    throw experiment::DeviceFileError(fmt::format("opening the device '{}' ended with {}", kind, end.how()));
  return std::stod(end.text) / mib;
}

struct MeasuredPeaks {
  std::array<double, experiment::arithmetics.size()> tflop_per_s{};
  double memory_gbytes_per_s = 0;
  // What runs held beside their account, by what they use: kernels alone, products too, a communicator too.
  std::optional<double> kernels_mib, with_products_mib, with_communicator_mib;
};

bool has_products(const record::CaseRecord& record) {
  return std::any_of(record.result.algorithms.begin(), record.result.algorithms.end(),
                     [](const auto& algorithm) { return algorithm.first.starts_with("matmul"); });
}
bool has_communicator(const record::CaseRecord& record) {
  return std::any_of(record.result.libraries.begin(), record.result.libraries.end(),
                     [](const auto& library) { return library.first.find("nccl") != std::string::npos; });
}

MeasuredPeaks measured_in(const std::vector<record::CaseRecord>& records, const std::string& device) {
  MeasuredPeaks found;
  for (const record::CaseRecord& record : records) {
    if (!record.result.device || record.result.device->name != device) continue;
    if (record.result.memory && record.result.memory->unexplained_mib) {
      std::optional<double>& most = has_communicator(record) ? found.with_communicator_mib
                                    : has_products(record)   ? found.with_products_mib
                                                             : found.kernels_mib;
      most = std::max(most.value_or(0), *record.result.memory->unexplained_mib);
    }
    const auto& efficiency = record.result.efficiency;
    if (!efficiency || !efficiency->measured || !record.result.work || record.identity.ranks.value_or(1) > 1) continue;
    found.memory_gbytes_per_s = std::max(found.memory_gbytes_per_s, efficiency->measured->gbytes_per_s.value_or(0));
    for (std::size_t i = 0; i < experiment::arithmetics.size(); ++i)
      if (record.result.work->arithmetic == experiment::arithmetics[i])
        found.tflop_per_s[i] = std::max(found.tflop_per_s[i], efficiency->measured->gflop_per_s.value_or(0) / 1e3);
  }
  return found;
}

std::string description_of(const experiment::DeviceDescription& device, const MeasuredPeaks& measured,
                           const std::optional<ProbedDevice>& probed) {
  std::string peaks, sources;
  const auto add = [&](const std::string& key, double stated, double tried) {
    if (stated <= 0 && tried <= 0) return;
    peaks += fmt::format("{} = {:.6g}\n", key, stated > 0 ? stated : tried);
    sources += fmt::format("\"peak.{}\" = {}\n", key,
                           stated > 0 ? experiment::toml_text("its maker's, by assay's table of devices")
                                      : experiment::toml_text("the most that runs on it, or probes, have measured"));
  };
  for (std::size_t i = 0; i < experiment::arithmetics.size(); ++i)
    add(fmt::format("{}_tflop_per_s", experiment::arithmetics[i]), device.tflop_per_s[i], measured.tflop_per_s[i]);
  add("memory_gbytes_per_s", device.memory_gbytes_per_s, measured.memory_gbytes_per_s);
  if (device.memory_gbytes_per_s <= 0 && measured.memory_gbytes_per_s <= 0)
    throw experiment::DeviceFileError(
        fmt::format("the bandwidth of {} is unknown; give a run on it by --from that measured peaks, such as one of "
                    "the decoder, or measure it by --probe",
                    device.name));
  std::string process;
  if (device.kind != "cpu") {
    process = "\n[process]\n";
    const auto add_figure = [&](const char* key, double mib, const char* source) {
      process += fmt::format("{} = {:.1f}\n", key, mib);
      sources += fmt::format("\"process.{}\" = {}\n", key, experiment::toml_text(source));
    };
    add_figure("context_mib", held_when_open_mib(device.kind),
               "what was not free when a process had opened the device");
    const char* const by_runs = "the most that runs on it held beside their account";
    const auto add_process = [&](const char* key, const std::optional<double>& with,
                                 const std::optional<double>& without) {
      if (with && without) add_figure(key, std::max(0.0, *with - *without), by_runs);
    };
    add_process("kernels_mib", measured.kernels_mib, 0.0);
    add_process("products_mib", measured.with_products_mib, measured.kernels_mib);
    add_process("communicator_mib", measured.with_communicator_mib, measured.with_products_mib);
  }
  if (probed) sources += probed->sources;
  for (const char* key : {"memory_total_mib", "compute_units"})
    sources += fmt::format("{} = {}\n", key, experiment::toml_text("as the driver reports it"));
  return fmt::format(
      "# This file states what the device of one machine is, as `assay describe-device` found it.\n\n"
      "kind = {}\nname = {}\nmemory_total_mib = {:.1f}\ncompute_units = {}\n\n[peak]\n{}{}{}\n[source]\n{}",
      experiment::toml_text(device.kind), experiment::toml_text(device.name), device.memory_total_mib,
      device.compute_units, peaks, process, probed ? probed->tables : "", sources);
}

}  // namespace

int describe_device(const DescribeDeviceRequest& request) {
  const std::string& wanted = request.device;
  if (!plugin::is_device_word(wanted))
    throw UsageError(fmt::format("--device is '{}'; expected {}", wanted, plugin::device_words_in_sentence()));
  const experiment::DeviceDescription device = device_of_this_machine(wanted);
  MeasuredPeaks measured = measured_in(earlier_records(request.from), device.name);
  std::optional<ProbedDevice> probed;
  if (request.probe) {
    probed = probe_device(device.kind);
    if (measured.memory_gbytes_per_s <= 0) measured.memory_gbytes_per_s = probed->copy_gbytes_per_s;
    for (std::size_t i = 0; i < experiment::arithmetics.size(); ++i)
      if (measured.tflop_per_s[i] <= 0) measured.tflop_per_s[i] = probed->tflop_per_s[i];
  }
  const std::string text = description_of(device, measured, probed);
  if (!request.output) {
    fmt::print("{}", text);
    return exit_ok;
  }
  const auto file = *request.output;
  write_file_atomically(file, text);
  fmt::print("written: {}\n", file);
  return exit_ok;
}

}  // namespace assay::host::plan
