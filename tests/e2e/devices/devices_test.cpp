#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Devices : public Sandbox {
 protected:
  // One small case on the device; the host must end with this code.
  json run_case(const std::string& device, int expected_code) {
    const auto records = records_of({.plugin = "decoder",
                                     .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 16",
                                     .measure = "warmup = 0\nsteps = 1",
                                     .device = device},
                                    expected_code);
    EXPECT_EQ(records.size(), 1u) << output();
    return records.empty() ? json::object() : records[0];
  }

  // From here on the loader writes what it opens, for the host and all it starts: one file per process.
  void trace_the_loader() {
    set_variable("LD_DEBUG", "files");
    set_variable("LD_DEBUG_OUTPUT", (folder() / "loader").string());
  }
  // The names of the libraries in the traces so far, those not found included.
  std::vector<std::string> libraries_asked_for() const {
    static const std::regex file("file=([^ ]+) ");
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
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
  void hide_gpus() { set_variable("CUDA_VISIBLE_DEVICES", "-1"); }
};

TEST_F(Devices, TheVersionOpensNoVendorLibrary) {
  trace_the_loader();
  EXPECT_EQ(run({"--version"}).exit.code, 0) << output();
  expect_no_vendor_library();
}

TEST_F(Devices, TheListOpensNoVendorLibrary) {
  trace_the_loader();
  EXPECT_EQ(run({"list"}).exit.code, 0) << output();
  expect_no_vendor_library();
}

TEST_F(Devices, ARunOnTheCpuOpensNoVendorLibrary) {
  trace_the_loader();
  EXPECT_EQ(run_case("cpu", 0).value("status", ""), "ok");
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
  const json r = run_case("cuda", 1);
  EXPECT_EQ(r.value("status", ""), "unsupported") << r;
  const std::string reason = r.value("reason", "");
  EXPECT_TRUE(std::regex_search(reason, std::regex("no NVIDIA driver is installed|no CUDA-capable device"))) << reason;
}

TEST_F(Devices, AutoWithoutAGpuTakesTheCpuAndSaysWhy) {
  hide_gpus();
  EXPECT_EQ(run_case("auto", 0)["device"].value("kind", ""), "cpu");
#ifdef ASSAY_HAVE_CUDA
  const std::regex note(
      "note: device = \"auto\" took the cpu: [^;]*(driver|CUDA-capable device)[^;]*; `assay doctor` says more\n");
#else
  const std::regex note("note: device = \"auto\" took the cpu: no cuda backend is installed");
#endif
  EXPECT_TRUE(std::regex_search(output(), note)) << output();
}

}  // namespace
}  // namespace assay::test
