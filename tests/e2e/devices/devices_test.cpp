#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/host_process.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class Devices : public testing::Test {
 protected:
  Devices() {
    std::string name = (fs::temp_directory_path() / "assay-devices-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    folder_ = name;
  }
  ~Devices() override {
    for (const char* variable : {"LD_DEBUG", "LD_DEBUG_OUTPUT", "CUDA_VISIBLE_DEVICES"}) unsetenv(variable);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  int start(const std::vector<std::string>& arguments) {
    HostProcess host(arguments, folder_, folder_ / "output.txt");
    const auto exit = host.wait();
    EXPECT_TRUE(all_descendants_are_gone());
    return exit.value_or(HostExit{}).code;
  }
  // One small case on the device.
  int start_case(const std::string& device) {
    std::ofstream(folder_ / "x.toml") << "schema = 1\nname = \"x\"\n[workload]\nplugin = \"decoder\"\n"
                                         "[workload.params]\nsize = \"tiny\"\nbatch_size = 1\ncontext_length = 16\n"
                                         "[measure]\nwarmup = 0\nsteps = 1\n[run]\ndevice = \""
                                      << device << "\"\n";
    return start({"run", "x.toml", "--output", "results"});
  }
  json record() const {
    std::ifstream lines(folder_ / "results/x/latest/cases.jsonl");
    std::string line;
    std::getline(lines, line);
    return json::parse(line, nullptr, false);
  }
  std::string output() const { return text_of(folder_ / "output.txt"); }

  // From here on the loader writes what it opens, for the host and all it starts: one file per process.
  void trace_the_loader() {
    setenv("LD_DEBUG", "files", 1);
    setenv("LD_DEBUG_OUTPUT", (folder_ / "loader").c_str(), 1);
  }
  // The names of the libraries in the traces so far, those not found included.
  std::vector<std::string> libraries_asked_for() const {
    static const std::regex file("file=([^ ]+) ");
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().rfind("loader.", 0) != 0) continue;
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator i(text.begin(), text.end(), file), end; i != end; ++i)
        names.push_back(fs::path((*i)[1].str()).filename());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  void expect_no_vendor_library() const {
    static const std::regex vendor("lib(cuda|cublas|cudnn|cupti|cusolver|cusparse|nccl|nv).*|libassay_device_cuda.*");
    const std::vector<std::string> names = libraries_asked_for();
    for (const std::string& name : names) EXPECT_FALSE(std::regex_match(name, vendor)) << name;
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [](const std::string& n) { return n.rfind("libc.", 0) == 0; }))
        << "the loader left no trace: this test sees nothing";
  }

  // The driver shows no GPU, also where there is one.
  static void hide_gpus() { setenv("CUDA_VISIBLE_DEVICES", "-1", 1); }

  fs::path folder_;
};

TEST_F(Devices, TheVersionOpensNoVendorLibrary) {
  trace_the_loader();
  EXPECT_EQ(start({"--version"}), 0) << output();
  expect_no_vendor_library();
}

TEST_F(Devices, TheListOpensNoVendorLibrary) {
  trace_the_loader();
  EXPECT_EQ(start({"list"}), 0) << output();
  expect_no_vendor_library();
}

TEST_F(Devices, ARunOnTheCpuOpensNoVendorLibrary) {
  trace_the_loader();
  EXPECT_EQ(start_case("cpu"), 0) << output();
  EXPECT_EQ(record().value("status", ""), "ok");
  expect_no_vendor_library();
  const auto names = libraries_asked_for();
  EXPECT_TRUE(std::find(names.begin(), names.end(), "libassay_device_cpu.so") != names.end())
      << "the worker's libraries are not in the trace";
}

TEST_F(Devices, CudaWithoutAGpuIsUnsupportedInTheDriversWords) {
#ifndef ASSAY_HAVE_CUDA
  GTEST_SKIP() << "built without the CUDA device";
#endif
  hide_gpus();
  EXPECT_EQ(start_case("cuda"), 1) << output();
  const json r = record();
  EXPECT_EQ(r.value("status", ""), "unsupported") << r;
  const std::string reason = r.value("reason", "");
  EXPECT_TRUE(std::regex_search(reason, std::regex("CUDA driver version is insufficient|no CUDA-capable device")))
      << reason;
}

TEST_F(Devices, AutoWithoutAGpuTakesTheCpuAndSaysWhy) {
  hide_gpus();
  EXPECT_EQ(start_case("auto"), 0) << output();
  EXPECT_EQ(record()["device"].value("kind", ""), "cpu");
#ifdef ASSAY_HAVE_CUDA
  const std::regex note("note: device = \"auto\" took the cpu: .*(driver|CUDA-capable device)");
#else
  const std::regex note("note: device = \"auto\" took the cpu: no cuda backend is installed");
#endif
  EXPECT_TRUE(std::regex_search(output(), note)) << output();
}

}  // namespace
}  // namespace assay::test
