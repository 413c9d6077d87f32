#include "experiment/hash.hpp"

#include "demo_workload.hpp"

#include <fstream>
#include <set>
#include <system_error>

namespace assay::host::experiment::test {
namespace {

using PairList = std::vector<std::pair<std::string, std::string>>;
const PairList identity{{"plugin.file_hash", "00ff"}, {"device", "cpu: demo"}, {"libraries", "demo 1.0"}};

std::string hash_of(const std::string& text, const std::vector<std::string>& set = {}) {
  return case_hash(good(text, set).cases.at(0), "demo", identity);
}

// Written by hand, so that a change of a schema or of a default elsewhere does not move the literal below.
Case plain_case() {
  Case c;
  c.params = {{"size", std::string("small")}, {"batch_size", std::int64_t{4}}, {"lr", 0.001}, {"checkpointing", false}};
  c.measure.steps = 10;
  return c;
}

TEST(CaseHash, HasNotChangedSinceResultsWereWritten) {
  EXPECT_EQ(case_hash(plain_case(), "demo", identity), "f14621fa272f6d54");
}

TEST(CaseHash, IsTheSameInAnyOrder) {
  const auto a = hash_of(
      "schema = 1\nname = \"a\"\n[workload]\nplugin = \"demo\"\nparams = {size = \"large\", lr = 1}\n"
      "[measure]\nwarmup = 1\nsteps = 2\n");
  const auto b = hash_of(
      "[measure]\nsteps = 2\nwarmup = 1\n[workload]\nparams = {lr = 1.0, size = \"large\"}\n"
      "plugin = \"demo\"\n[sweep]\nbatch_size = [4]\n[output]\ndir = \"x\"\n",
      {"schema=1", "name=b"});
  EXPECT_EQ(a, b);
  PairList reversed(identity.rbegin(), identity.rend());
  EXPECT_EQ(case_hash(plain_case(), "demo", identity), case_hash(plain_case(), "demo", reversed));
}

TEST(CaseHash, IgnoresWhatDoesNotChangeTheMeasurement) {
  Case c = plain_case();
  c.index = 9;
  c.axes = {{"size", std::string("small")}};
  c.measure.timeout = std::chrono::seconds(1);
  c.run.stall_timeout = std::chrono::seconds(1);
  c.run.wireup_timeout = std::chrono::seconds(1);
  c.run.allow = {"oom"};
  c.run.isolate = false;
  EXPECT_EQ(case_hash(c, "demo", identity), case_hash(plain_case(), "demo", identity));
}

TEST(CaseHash, OneRankIsOneRankHoweverItIsSaid) {
  Case c = plain_case();
  ASSERT_EQ(c.run.ranks, ranks_auto);
  c.run.ranks = 1;
  EXPECT_EQ(case_hash(c, "demo", identity), case_hash(plain_case(), "demo", identity));
}

TEST(CaseHash, DiffersWithEveryValueSettingAndIdentity) {
  std::set<std::string> hashes{case_hash(plain_case(), "demo", identity), case_hash(plain_case(), "other", identity),
                               case_hash(plain_case(), "demo", {})};
  const auto add = [&](auto change) {
    Case c = plain_case();
    change(c);
    hashes.insert(case_hash(c, "demo", identity));
  };
  add([](Case& c) { c.params["size"] = std::string("large"); });
  add([](Case& c) { c.params["batch_size"] = std::int64_t{5}; });
  add([](Case& c) { c.params["batch_size"] = 4.0; });
  add([](Case& c) { c.params["batch_size"] = std::string("4"); });
  add([](Case& c) { c.params["lr"] = 0.0010000000000000002; });
  add([](Case& c) { c.params["checkpointing"] = true; });
  add([](Case& c) { c.params.erase("lr"); });
  add([](Case& c) { c.measure.warmup = 6; });
  add([](Case& c) { c.measure.steps = 11; });
  add([](Case& c) { c.measure.steps.reset(); });
  add([](Case& c) { c.measure.until.emplace(); });
  add([](Case& c) { c.measure.until.emplace().relative_error = 0.5; });
  add([](Case& c) { c.measure.sync = false; });
  add([](Case& c) { c.run.device = "cpu"; });
  add([](Case& c) { c.run.ranks = ranks_all; });
  add([](Case& c) { c.run.ranks = 2; });
  add([](Case& c) { c.run.bind = "cores"; });
  add([](Case& c) { c.run.seed = 1; });
  add([](Case& c) { c.run.threads = 1; });
  add([](Case& c) { c.run.memory_limit_bytes = 1; });
  add([](Case& c) { c.profile.nvtx = false; });
  add([](Case& c) { c.profile.nsys = true; });
  add([](Case& c) { c.profile.ncu = true; });
  add([](Case& c) { c.profile.kernels = true; });
  add([](Case& c) { c.profile.memory_snapshot = true; });
  EXPECT_EQ(hashes.size(), 28u);
  PairList other = identity;
  other[0].second = "00fe";
  hashes.insert(case_hash(plain_case(), "demo", other));
  EXPECT_EQ(hashes.size(), 29u);
}

TEST(CaseHash, KeepsNeighbouringTextsApart) {
  EXPECT_NE(case_hash({}, "demo", {{"a", "b\n8:identity 1:c 1:d"}}), case_hash({}, "demo", {{"a", "b"}, {"c", "d"}}));
  EXPECT_NE(case_hash({}, "demo", {{"ab", "c"}}), case_hash({}, "demo", {{"a", "bc"}}));
}

}  // namespace
}  // namespace assay::host::experiment::test
