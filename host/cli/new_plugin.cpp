// assay new plugin NAME: a complete plugin project outside the tree, that builds and runs as it is.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/options.hpp"
#include "common/files.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* cmake_text = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
find_package(assay 1.0 CONFIG REQUIRED)
assay_add_plugin(@NAME@ @NAME@.cpp)
)";

constexpr const char* source_text = R"(// @NAME@: y += a x over one vector, to be replaced by your own workload.
#include <assay/plugin.hpp>
#include <cmath>

struct @TYPE@ {
  static constexpr auto id = "@NAME@", summary = "y += a x over one vector", item_unit = "elements";
  static constexpr auto params = assay::table(
      assay::Param::integer("n", 1 << 20).at_least(1).unit("elements").help("length of the vectors"),
      assay::Param::real("a", 0.5).help("factor"));
  static constexpr auto phases = assay::names("axpy");
  static constexpr std::uint32_t device_flags = ASSAY_DEVICE_CPU;  // the loop below reads device memory as its own

  explicit @TYPE@(const assay::Case& c) : host(c.host()), n(c.get<std::int64_t>("n")), a(c.get<float>("a")) {}

  // Once, before warm-up: allocate and fill. Memory taken through the host is accounted for by kind.
  void setup(const assay::Launch&) {
    const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
    x = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, bytes, "x");
    y = assay::DeviceMemory(host, ASSAY_MEMORY_DATA, bytes, "y");
    for (std::int64_t i = 0; i < n; ++i) x.data<float>()[i] = 1.0F, y.data<float>()[i] = 0.0F;
    runs = 0;
  }

  // One step: no allocation, no logging.
  void run(const assay::Launch& launch) {
    const auto phase = launch.phase(0);
    const float* xs = x.data<float>();
    float* ys = y.data<float>();
    for (std::int64_t i = 0; i < n; ++i) ys[i] += a * xs[i];
    ++runs;
  }

  // After the last step. Throw WRONG_RESULT, or return what was checked.
  std::string verify(const assay::Launch&) {
    const double expected = static_cast<double>(runs) * static_cast<double>(a);
    const double got = static_cast<double>(y.data<float>()[n - 1]);
    if (std::abs(got - expected) > 1e-3 * std::abs(expected))
      throw assay::Error(ASSAY_WRONG_RESULT, "y[n-1] is " + std::to_string(got) + ", expected " + std::to_string(expected));
    return "last element equals steps * a";
  }

  // Of one step: a multiply and an add per element; read x, read y, write y, 4 bytes each.
  assay::Work work() const {
    const auto count = static_cast<std::uint64_t>(n);
    return {.flops = 2 * count, .bytes = 12 * count, .items = count};
  }

  assay::Host host;
  std::int64_t n;
  float a;
  std::int64_t runs = 0;
  assay::DeviceMemory x, y;
};

ASSAY_PLUGIN("org.example.@NAME@", "0.1.0", @TYPE@)
)";

constexpr const char* experiment_text = R"(schema = 1
name = "@NAME@"
description = "a first look at @NAME@"

[workload]
plugin = "./build/@NAME@.so"

[sweep]
n = [65536, 1048576, 16777216]

[measure]
warmup = 5
until = { relative_error = 0.02, confidence = 0.95, min_steps = 20, max_steps = 500 }

[run]
device = "cpu"
)";

constexpr const char* readme_text = R"(# @NAME@

A workload plugin for assay.

    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="@PREFIX@"
    cmake --build build
    assay run @NAME@.toml

`assay describe ./build/@NAME@.so` prints its parameters.
)";

std::string fill_in(std::string text, const std::string& name, const std::string& prefix) {
  std::string type = name;
  type[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(type[0])));
  const std::pair<std::string, std::string> places[] = {{"@NAME@", name}, {"@TYPE@", type}, {"@PREFIX@", prefix}};
  for (const auto& [mark, value] : places)
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  return text;
}

void check_name(const std::string& name) {
  const bool valid = !name.empty() && std::islower(static_cast<unsigned char>(name[0])) &&
                     std::all_of(name.begin(), name.end(),
                                 [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
  if (!valid)
    throw UsageError(
        fmt::format("'{}' cannot name a plugin; expected a lower-case letter, then lower-case letters, digits "
                    "or '_', such as 'my_plugin'",
                    name));
}

}  // namespace

int new_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("output", po::value<std::string>(), "folder to write; default: ./NAME");
  const ParsedOptions options = parse_options(
      arguments, "assay new plugin NAME [options]",
      "Writes a complete plugin project: CMakeLists.txt, NAME.cpp, NAME.toml, README.md. It builds and runs as it is.",
      visible, "what", 2);
  if (options.help) return run::exit_ok;
  const auto words = options.values.count("what") ? options.values["what"].as<Arguments>() : Arguments{};
  if (words.size() != 2 || words[0] != "plugin") throw UsageError("expected 'assay new plugin NAME'");
  const std::string& name = words[1];
  check_name(name);
  const fs::path folder =
      options.values.count("output") ? fs::path(options.values["output"].as<std::string>()) : fs::path(name);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    fmt::print(stderr, "assay: {} exists and is not empty; nothing was written; give another --output\n",
               folder.string());
    return run::exit_usage;
  }
  if (const int error_number = try_creating_folders(folder); error_number != 0)
    throw StorageError(fmt::format("cannot create {}: {}; give another --output", folder.string(),
                                   std::generic_category().message(error_number)));
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string prefix = self.parent_path().parent_path().string();
  write_file_atomically(folder / "CMakeLists.txt", fill_in(cmake_text, name, prefix));
  write_file_atomically(folder / (name + ".cpp"), fill_in(source_text, name, prefix));
  write_file_atomically(folder / (name + ".toml"), fill_in(experiment_text, name, prefix));
  write_file_atomically(folder / "README.md", fill_in(readme_text, name, prefix));
  fmt::print(
      "{0}/CMakeLists.txt\n{0}/{1}.cpp\n{0}/{1}.toml\n{0}/README.md\n\nNext:\n"
      "  cd {0}\n  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=\"{2}\"\n"
      "  cmake --build build\n  assay run {1}.toml\n",
      folder.string(), name, prefix);
  return run::exit_ok;
}

}  // namespace assay::host::cli
