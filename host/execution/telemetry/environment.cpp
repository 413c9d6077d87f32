#include "telemetry/environment.hpp"

#include "assay_revision.hpp"  // made by revision.cmake at each build
#include "common/utc.hpp"
#include "telemetry/cgroup.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/recorded_texts.hpp"
#include "telemetry/text_files.hpp"

#include <assay/device.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

namespace assay::host::telemetry {
namespace {

using Json = nlohmann::ordered_json;

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\"");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n\"") - begin + 1));
}

// The value of the first line "key<separator>value".
std::optional<std::string> value_of(std::string_view text, std::string_view key, char separator) {
  std::optional<std::string> found;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t at = line.find(separator);
    if (!found && at != std::string_view::npos && trimmed(line.substr(0, at)) == key)
      found = trimmed(line.substr(at + 1));
  });
  return found;
}

void set_if(Json& json, const char* key, const std::optional<std::string>& value) {
  if (value && !value->empty()) json[key] = *value;
}

double mib(double bytes) { return std::round(bytes / 1048576.0 * 10.0) / 10.0; }

std::optional<std::string> turbo(const std::filesystem::path& root) {
  const auto cpu = root / "sys/devices/system/cpu";
  if (const auto off = read_text(cpu / "intel_pstate/no_turbo")) return trimmed(*off) == "0" ? "on" : "off";
  if (const auto on = read_text(cpu / "cpufreq/boost")) return trimmed(*on) == "1" ? "on" : "off";
  return std::nullopt;
}

Json cpu_json(const std::filesystem::path& root, const utsname* system) {
  Json cpu = Json::object();
  const std::string info = read_text(root / "proc/cpuinfo").value_or("");
  set_if(cpu, "model", value_of(info, "model name", ':'));
  set_if(cpu, "vendor", value_of(info, "vendor_id", ':'));
  if (system) cpu.emplace("architecture", system->machine);
  if (const long count = ::sysconf(_SC_NPROCESSORS_ONLN); count > 0) cpu.emplace("logical_cores", count);
  if (const std::size_t count = usable_processors().size(); count > 0) cpu.emplace("usable_cores", count);
  if (const auto quota = cgroup_cpu_quota_cores(root)) cpu.emplace("quota_cores", *quota);
  const auto devices = root / "sys/devices/system";
  if (const auto text = read_text(devices / "cpu/cpu0/cpufreq/scaling_governor"))
    set_if(cpu, "governor", trimmed(*text));
  set_if(cpu, "turbo", turbo(root));
  if (const auto text = read_text(devices / "node/online"))
    if (const std::size_t count = count_of_list(trimmed(*text)); count > 0) cpu.emplace("numa_nodes", count);
  return cpu;
}

Json memory_json(const std::filesystem::path& root) {
  Json memory = Json::object();
  const std::string info = read_text(root / "proc/meminfo").value_or("");
  const auto kib_of = [&info](const char* key) -> std::optional<double> {
    const auto text = value_of(info, key, ':');
    return text ? std::optional(std::strtod(text->c_str(), nullptr)) : std::nullopt;
  };
  const auto total_kib = kib_of("MemTotal"), available_kib = kib_of("MemAvailable");
  if (total_kib) memory.emplace("total_mib", mib(*total_kib * 1024.0));
  if (available_kib) memory.emplace("available_mib", mib(*available_kib * 1024.0));
  const auto limit_bytes = cgroup_memory_limit_bytes(root);
  // Version 1 spells "no limit" as a number near 2^63.
  if (limit_bytes && (!total_kib || static_cast<double>(*limit_bytes) < *total_kib * 1024.0))
    memory.emplace("cgroup_limit_mib", mib(static_cast<double>(*limit_bytes)));
  return memory;
}

Json os_json(const std::filesystem::path& root, const utsname* system) {
  Json os = Json::object();
  if (system) os.emplace("kernel", std::string(system->sysname) + " " + system->release);
  set_if(os, "distribution", value_of(read_text(root / "etc/os-release").value_or(""), "PRETTY_NAME", '='));
  os.emplace("glibc", ::gnu_get_libc_version());
  if (system) os.emplace("hostname", system->nodename);
  return os;
}

// The driver's own number, "580.95.05": the first word of figures and dots in the kernel module's line. Read from the
// kernel, so that no vendor's library is opened.
std::optional<std::string> nvidia_driver(const std::filesystem::path& root) {
  const std::string text = read_text(root / "proc/driver/nvidia/version").value_or("");
  std::istringstream words(text.substr(0, text.find('\n')));
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return std::nullopt;
}

// Describes the scheduler's job that this process runs in; null without one.
Json job_json(const std::vector<std::pair<std::string, std::string>>& variables) {
  const auto text = [&variables](const char* name) -> std::string {
    for (const auto& [key, value] : variables)
      if (key == name) return value;
    return "";
  };
  if (text("SLURM_JOB_ID").empty()) return {};
  Json job{{"scheduler", "Slurm"}, {"id", text("SLURM_JOB_ID")}};
  set_if(job, "array_id", text("SLURM_ARRAY_JOB_ID"));
  set_if(job, "array_task", text("SLURM_ARRAY_TASK_ID"));
  set_if(job, "restarts", text("SLURM_RESTART_COUNT"));
  set_if(job, "nodes", text("SLURM_JOB_NODELIST"));
  set_if(job, "partition", text("SLURM_JOB_PARTITION"));
  return job;
}

std::vector<std::pair<std::string, std::string>> variables_of_process() {
  std::vector<std::pair<std::string, std::string>> result;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) result.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace

EnvironmentSource::EnvironmentSource() : variables(variables_of_process) {}

nlohmann::ordered_json capture_environment(const EnvironmentSource& source) {
  utsname names{};
  const utsname* system = ::uname(&names) == 0 ? &names : nullptr;
  Json environment = {{"schema", 1}, {"captured", utc_text(std::chrono::system_clock::now())}};
  set_if(environment, "command", command_line(read_text(source.root / "proc/self/cmdline").value_or("")));
  environment.emplace("cpu", cpu_json(source.root, system));
  environment.emplace("memory", memory_json(source.root));
  environment.emplace("os", os_json(source.root, system));
  if (const auto driver = nvidia_driver(source.root)) environment.emplace("gpu", Json{{"driver", *driver}});
  if (const auto text = read_text(source.root / "proc/loadavg")) {
    Json loads = Json::array();
    const char* at = text->c_str();
    for (int i = 0; i < 3; ++i) {
      char* end = nullptr;
      const double load = std::strtod(at, &end);
      if (end == at) break;
      loads.push_back(load);
      at = end;
    }
    if (loads.size() == 3) environment.emplace("load_average", std::move(loads));  // over 1, 5 and 15 minutes
  }
  environment.emplace("assay", Json{{"version", assay_version()},
                                    {"revision", assay_revision()},
                                    {"compiler", assay_compiler()},
                                    {"abi", assay_abi()},
                                    {"device_abi", assay_device_abi()}});
  auto variables = source.variables();
  std::sort(variables.begin(), variables.end());
  if (Json job = job_json(variables); !job.is_null()) environment.emplace("job", std::move(job));
  Json recorded = Json::object();
  for (const auto& [name, value] : variables)
    if (is_recorded_variable(name)) recorded[name] = without_passwords(value);
  environment.emplace("variables", std::move(recorded));
  return environment;
}

std::string assay_version() { return ASSAY_VERSION; }
std::string assay_revision() { return ASSAY_GIT_REVISION; }
std::string assay_compiler() { return ASSAY_BUILD_INFO; }
std::string assay_abi() { return fmt::format("{}.{}", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR); }
std::string assay_device_abi() { return fmt::format("{}.{}", ASSAY_DEVICE_ABI_MAJOR, ASSAY_DEVICE_ABI_MINOR); }

}  // namespace assay::host::telemetry
