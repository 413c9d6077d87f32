#include "plugin/search.hpp"

#include "common/files.hpp"
#include "plugin/device_words.hpp"
#include "plugin/library_copy.hpp"
#include "plugin/table_reader.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

const fs::path folder = PLUGINS;

// Whether this process has the library open, or a copy of it in memory.
bool is_open_here(const std::string& name) {
  return read_file("/proc/self/maps").find(name + ".so") != std::string::npos;
}
std::string refusal(const std::string& name) {
  try {
    find_workload(name, {folder}, folder);
  } catch (const PluginError& e) {
    return e.what();
  }
  return "";
}

TEST(FindWorkload, AMistypedNameOpensNoLibraryHere) {
  const std::string text = refusal("idle_worklaod");
  EXPECT_NE(text.find("did you mean 'idle_workload'?"), std::string::npos) << text;
  EXPECT_NE(text.find("known workloads: idle_workload;"), std::string::npos) << text;
  EXPECT_NE(text.find("aborts_when_opened.so: opening it, or reading its tables, ends the process: signal 6"),
            std::string::npos)
      << text;
  EXPECT_FALSE(is_open_here("unlike_its_workload"));
  EXPECT_FALSE(is_open_here("aborts_when_opened"));
}

TEST(FindWorkload, AnIdIsFoundInAFileOfAnotherName) {
  const FoundWorkload found = find_workload("idle_workload", {folder}, folder);
  EXPECT_EQ(found.schema.id, "idle_workload");
  EXPECT_EQ(found.file, folder / "unlike_its_workload.so");
  EXPECT_EQ(found.tables.id, "org.assay.test.unlike_its_workload");
  EXPECT_FALSE(is_open_here("unlike_its_workload"));
  EXPECT_FALSE(is_open_here("aborts_when_opened"));
}

// A debugger opens it: one that waits for its own descriptor of this number would never come to the plugin.
TEST(LibraryCopy, HasANameThatLeadsToItInOtherProcesses) {
  const LibraryCopy copy = LibraryCopy::take(folder / "unlike_its_workload.so");
  FILE* other = popen(("head -c 4 " + copy.name_to_open().string()).c_str(), "r");
  ASSERT_NE(other, nullptr);
  std::string begin(4, '?');
  begin.resize(std::fread(begin.data(), 1, begin.size(), other));
  EXPECT_EQ(pclose(other), 0);
  EXPECT_EQ(begin,
            "\x7f"
            "ELF");
}

// A backend is known by the name of its file, whether the host has a row of its kind or not.
TEST(FindDevice, AnInstalledBackendIsAWordForADevice) {
  const test::TemporaryFolder backends;
  for (const char* kind : {"hip", "cpu"})
    test::put_file(backends / ("libassay_device_" + std::string(kind) + ".so"), "");
  ::setenv("ASSAY_DEVICE_PATH", "", 1);
  EXPECT_EQ(device_words(), (std::vector<std::string>{"auto", "cpu", "cuda"}));
  EXPECT_FALSE(is_device_word("hip"));
  ::setenv("ASSAY_DEVICE_PATH", backends.path().c_str(), 1);
  EXPECT_EQ(device_words(), (std::vector<std::string>{"auto", "cpu", "cuda", "hip"}));
  EXPECT_EQ(device_words_in_sentence(), "auto, cpu, cuda or hip");
  EXPECT_TRUE(is_device_word("hip") && is_device_word("auto") && !is_device_word("sycl"));
  EXPECT_EQ(kinds_for_auto(other_device_kinds()), (std::vector<std::string>{"cuda", "hip", "cpu"}));
  ::unsetenv("ASSAY_DEVICE_PATH");
}

TEST(DeviceKinds, AnotherBackendsDeviceIsAGpu) {
  EXPECT_TRUE(is_gpu("cuda"));
  EXPECT_TRUE(is_gpu("hip"));
  EXPECT_FALSE(is_gpu("cpu"));
  EXPECT_FALSE(is_gpu("auto"));
  EXPECT_FALSE(is_gpu(""));
}

}  // namespace
}  // namespace assay::host::plugin
