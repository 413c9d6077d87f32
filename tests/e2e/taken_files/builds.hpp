// A sandbox with its own plugin folder, in which one build or another lies.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {

class Builds : public Sandbox {
 protected:
  Builds() {
    std::filesystem::create_directories(plugins() / "needs");
    std::filesystem::create_directories(devices());
    install(1);
    set_variable("ASSAY_DEVICE_PATH", devices().string());
    set_variable("ASSAY_PLUGIN_PATH", plugins().string());
  }

  static std::filesystem::path built(int build, const std::string& name) {
    return std::filesystem::path(BUILDS) / ("build_" + std::to_string(build)) / name;
  }
  std::filesystem::path plugins() const { return folder() / "plugins"; }
  std::filesystem::path devices() const { return folder() / "devices"; }
  std::filesystem::path plugin() const { return plugins() / "paced.so"; }

  // By a rename, as a build system or a package manager puts a file in the place of another one.
  static void put(const std::filesystem::path& from, const std::filesystem::path& to) {
    const std::filesystem::path beside = to.string() + ".new";
    std::filesystem::copy_file(from, beside, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(beside, to);
  }
  void install_plugin(int build) const { put(built(build, "paced.so"), plugin()); }
  void install_helper(int build) const {
    put(built(build, "libpace_helper.so"), plugins() / "needs/libpace_helper.so");
  }
  void install_other_device(int build) const {
    put(built(build, "libassay_device_cuda.so"), devices() / "libassay_device_cuda.so");
  }
  void install(int build) const { install_plugin(build), install_helper(build); }

  static ExperimentText sweep_of_four(const std::string& nap_ms = "0") {
    return {.plugin = "paced",
            .params = "nap_ms = " + nap_ms,
            .measure = "warmup = 0\nsteps = 3",
            .sweep = "i = [0, 1, 2, 3]"};
  }

  // The same, whose cases but the first wait until the test lets them go on: whatever it does to files meanwhile has
  // been done before they end.
  ExperimentText gated_sweep_of_four() const {
    std::filesystem::create_directories(gates());
    ExperimentText text = sweep_of_four();
    text.params += "\ngates = \"" + gates().string() + "\"";
    return text;
  }
  std::filesystem::path gates() const { return folder() / "gates"; }
  void open_gates(const std::vector<int>& of_cases = {1, 2, 3}) const {
    for (const int i : of_cases) std::ofstream(gates() / std::to_string(i)) << "open";
  }
  void close_gates() const {
    std::filesystem::remove_all(gates());
    std::filesystem::create_directories(gates());
  }
};

}  // namespace assay::test
