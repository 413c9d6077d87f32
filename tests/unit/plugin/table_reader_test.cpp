// A plugin's tables, read in a child and carried over as a text.
#include "plugin/table_reader.hpp"

#include "common/files.hpp"
#include "plugin/entry_check.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <thread>

namespace assay::host::plugin {
namespace {

namespace fs = std::filesystem;

const fs::path plugins = PLUGINS;

Refusal refusal_of(const std::function<void()>& read, std::string* text = nullptr) {
  try {
    read();
  } catch (const PluginError& e) {
    if (text) *text = e.what();
    return e.why();
  }
  ADD_FAILURE() << "nothing was refused";
  return Refusal::other;
}

TEST(Tables, OfAnotherMachinesLibraryAreRefusedByItsName) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "other.so";
  std::string own = read_file("/proc/self/exe").substr(0, 4096);
  own[18] = own[18] == static_cast<char>(183) ? 62 : static_cast<char>(183);  // aarch64, or x86-64 there
  std::ofstream(file, std::ios::binary) << own;
  std::string text;
  EXPECT_EQ(refusal_of([&] { read_tables(file); }, &text), Refusal::file);
  EXPECT_NE(text.find("is built for "), std::string::npos) << text;
  EXPECT_NE(text.find(", and this machine is "), std::string::npos) << text;
}

TEST(Tables, AreTheSameAfterTheWayThroughAText) {
  PluginTables tables{"org.x", "1.0", "g++ \u00fc", 1, 3, 2, {}};
  WorkloadSchema w;
  w.id = "w", w.summary = "a \"summary\"\nof two lines", w.item_unit = "tokens";
  w.params.push_back({"n",
                      "MiB",
                      "help",
                      ParamType::integer,
                      std::int64_t{std::numeric_limits<std::int64_t>::min()},
                      false,
                      -1.5,
                      std::nullopt,
                      {},
                      false,
                      false});
  w.params.push_back({"x",
                      "",
                      "",
                      ParamType::real,
                      std::numeric_limits<double>::infinity(),
                      true,
                      std::nullopt,
                      0.1,
                      {},
                      false,
                      false});
  w.params.push_back(
      {"s", "", "", ParamType::text, std::string("b"), false, std::nullopt, std::nullopt, {"a", "b"}, true, false});
  w.params.push_back({"b", "", "", ParamType::boolean, true, false, std::nullopt, std::nullopt, {}, false, true});
  w.metrics.push_back({"loss", "nats", "", Direction::lower_is_better, true, {}});
  w.metrics.push_back({"dtype", "", "", Direction::neither, false, {"fp32"}});
  w.phases = {"forward"};
  w.presets.push_back({"s", "a", "s", "b", "cuda", "x", 0.1});
  w.devices = {"cpu"}, w.verifies = true, w.starts_cold = true, w.ranks = RanksAre::cooperating;
  w.is_open = w.params.back().words = true;
  tables.workloads = {w, w};
  const std::string line = to_line(tables);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const PluginTables again = tables_from_line(line);
  EXPECT_EQ(to_line(again), line);
  ASSERT_EQ(again.workloads.size(), 2u);
  const WorkloadSchema& read = again.workloads[1];
  EXPECT_EQ(read.summary, w.summary);
  EXPECT_EQ(read.params[0].default_value, w.params[0].default_value);
  EXPECT_EQ(read.params[1].default_value, w.params[1].default_value);
  EXPECT_EQ(read.params[1].max, 0.1);
  EXPECT_EQ(read.params[2].choices, w.params[2].choices);
  EXPECT_EQ(read.params[3].default_value, Value(true));
  EXPECT_EQ(read.metrics[0].direction, Direction::lower_is_better);
  EXPECT_EQ(read.presets[0].value, Value(0.1));
  EXPECT_EQ(read.ranks, RanksAre::cooperating);
  EXPECT_TRUE(read.is_open && read.params[3].words && !read.params[2].words);
  EXPECT_TRUE(read.verifies && read.starts_cold && read.runs_on("cpu") && !read.runs_on("cuda"));
  // A backend that has been installed since.
  const test::TemporaryFolder backends;
  test::put_file(backends / "libassay_device_hip.so", "");
  WorkloadSchema of_any;
  of_any.id = "any";
  const std::string any_line = to_line({"p", "1", "b", 1, 0, 0, {w, of_any}});
  ::setenv("ASSAY_DEVICE_PATH", backends.path().c_str(), 1);
  const PluginTables since = tables_from_line(any_line);
  ::unsetenv("ASSAY_DEVICE_PATH");
  EXPECT_FALSE(since.workloads.at(0).runs_on("hip")) << "it names its devices";
  EXPECT_TRUE(since.workloads.at(1).runs_on("hip"));
}

TEST(TableReader, TellsWhatAFileHoldsOrWhyItCannotBeUsed) {
  const fs::path file = plugins / "unlike_its_workload.so";
  EXPECT_EQ(read_tables(file).workload_ids(), std::vector<std::string>{"idle_workload"});
  std::string text;
  EXPECT_EQ(refusal_of([] { read_tables(plugins / "none.so"); }, &text), Refusal::file);
  EXPECT_EQ(text, (plugins / "none.so").string() + ": no such plugin file");
  EXPECT_EQ(refusal_of([] { read_tables(plugins / "aborts_when_opened.so"); }), Refusal::ended);
  const test::TemporaryFolder own;
  fs::copy_file(file, own.path() / "short.so");
  fs::resize_file(own.path() / "short.so", 2000);
  EXPECT_THROW(read_tables(own.path() / "short.so"), PluginError);
  write_file_atomically(own.path() / "text.so", "no library");
  EXPECT_EQ(refusal_of([&] { read_tables(own.path() / "text.so"); }), Refusal::file);
}

TEST(TableReader, DoesNotWaitLongerThanItsDeadline) {
  std::string text;
  EXPECT_EQ(refusal_of([] { read_tables(fs::path(HANGING) / "hangs_when_opened.so", std::chrono::milliseconds(300)); },
                       &text),
            Refusal::overdue);
  EXPECT_NE(text.find("takes longer than 0.3 s"), std::string::npos) << text;
}

TEST(TableReader, RemembersAFileUntilItChanges) {
  const test::TemporaryFolder own;
  ASSERT_EQ(setenv("ASSAY_CACHE_DIR", (own.path() / "cache").c_str(), 1), 0);
  const fs::path file = plugins / "unlike_its_workload.so", cache = own.path() / "cache" / "plugins";
  // A file of the last seconds is not remembered: it may be written again without a sign of it.
  struct stat found {};
  ASSERT_EQ(stat(file.c_str(), &found), 0);
  while (found.st_ctim.tv_sec + 2 >= std::time(nullptr)) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  read_tables(file);
  const auto entries = [&] { return std::distance(fs::directory_iterator(cache), fs::directory_iterator()); };
  ASSERT_EQ(entries(), 1);
  const fs::path entry = fs::directory_iterator(cache)->path();
  std::string text = read_file(entry);
  const std::size_t id = text.find("idle_workload");
  write_file_atomically(entry, text.replace(id, 4, "IDLE"));
  EXPECT_EQ(read_tables(file).workload_ids().front(), "IDLE_workload") << "it was not remembered";
  write_file_atomically(entry, "of another state\n" + text.substr(text.find('\n') + 1));
  EXPECT_EQ(read_tables(file).workload_ids().front(), "idle_workload");
  write_file_atomically(entry, text.substr(0, text.size() / 2));
  EXPECT_EQ(read_tables(file).workload_ids().front(), "idle_workload") << "half of what was remembered";
  ASSERT_EQ(setenv("ASSAY_CACHE_DIR", "", 1), 0);
  fs::remove_all(cache);
  read_tables(file);
  EXPECT_FALSE(fs::exists(cache));
  unsetenv("ASSAY_CACHE_DIR");
}

}  // namespace
}  // namespace assay::host::plugin
