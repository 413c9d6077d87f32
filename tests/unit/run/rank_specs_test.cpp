#include "run/rank_specs.hpp"

#include "planned_runs.hpp"

namespace assay::host::run::test {
namespace {

class RankSpecs : public testing::Test {
 protected:
  RankSpecs() {
    target_.schema = small_schema();
    target_.plugin_file = "/plugins/libdemo.so";
  }
  std::vector<worker::CaseSpec> specs(const std::vector<RankPlace>& places) {
    CasePlan planned{case_, device_};
    planned.ranks = static_cast<std::int32_t>(places.size());
    return specs_of_ranks(planned, target_, "/runs/demo/1", places, {{{"127.0.0.1"}, 4711, "token"}, "case/0/"});
  }

  RunTarget target_;
  experiment::Case case_ = small_case(6);
  worker::FoundDevice device_ = device_of("cpu", 1);
};

TEST_F(RankSpecs, ARankThatIsAloneMeetsNobody) {
  const std::vector<worker::CaseSpec> all = specs({{"n1", 3, "0,1,"}});
  ASSERT_EQ(all.size(), 1u);
  const worker::CaseSpec& spec = all.front();
  EXPECT_TRUE(spec.is_alone());
  EXPECT_EQ(spec.ranks.host_name, "");
  EXPECT_EQ(spec.ranks.prefix, "");
  EXPECT_TRUE(spec.ranks.service.addresses.empty());
  EXPECT_EQ(spec.ranks.local_count, 1);
  EXPECT_EQ(spec.ranks.sharer_count, 1);
  EXPECT_FALSE(spec.shares_processors());
  EXPECT_EQ(spec.workload, "demo");
  EXPECT_EQ(spec.plugin_file, "/plugins/libdemo.so");
  EXPECT_EQ(spec.phase_names, (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(spec.log_file(), "/runs/demo/1/logs/case-0007.log");
}

TEST_F(RankSpecs, ARankThatIsAloneTakesTheFirstDevice) {
  device_ = device_of("cuda", 4);
  EXPECT_EQ(specs({{"n1", 3, "0,"}}).front().device_ordinal, 0);
}

TEST_F(RankSpecs, EachRankHasItsOwnFiles) {
  const std::vector<worker::CaseSpec> all = specs({{"n1", 0, "0,1,"}, {"n1", 1, "0,1,"}});
  EXPECT_EQ(all[0].log_file(), "/runs/demo/1/logs/case-0007.rank0.log");
  EXPECT_EQ(all[1].log_file(), "/runs/demo/1/logs/case-0007.rank1.log");
  EXPECT_EQ(all[1].file_of_run("kernels_" + all[1].file_stem() + ".md"), "/runs/demo/1/kernels_case-0007.rank1.md");
}

TEST_F(RankSpecs, AnOutputFileLiesInTheRunFolder) {
  EXPECT_EQ(std::get<std::string>(specs({{"n1", 0, ""}}).front().values.params.at("trace")), "");
  case_.params["trace"] = std::string("trace.json");
  case_.params["weights"] = std::string("weights.bin");
  const worker::CaseSpec spec = specs({{"n1", 0, ""}}).front();
  EXPECT_EQ(std::get<std::string>(spec.values.params.at("trace")), "/runs/demo/1/trace.json");
  EXPECT_EQ(std::get<std::string>(spec.values.params.at("weights")), "weights.bin");
}

// Two cases of a sweep wrote one file, and the last one was left.
TEST_F(RankSpecs, NoTwoCasesOrRanksWriteOneFile) {
  case_.params["trace"] = std::string("a/trace.json");
  const auto files = [this](const std::vector<RankPlace>& places) {
    std::vector<std::string> named;
    for (const worker::CaseSpec& spec : specs(places)) {
      for (const std::string& file : spec.output_files)
        EXPECT_EQ(file, std::get<std::string>(spec.values.params.at("trace")));
      named.insert(named.end(), spec.output_files.begin(), spec.output_files.end());
    }
    return named;
  };
  EXPECT_EQ(files({{"n1", 0, ""}}), std::vector<std::string>{"/runs/demo/1/a/trace.json"});
  EXPECT_EQ(files({{"n1", 0, ""}, {"n1", 1, ""}}),
            (std::vector<std::string>{"/runs/demo/1/a/trace.case-0007.rank0.json",
                                      "/runs/demo/1/a/trace.case-0007.rank1.json"}));
  case_.is_one_of_several = true;
  EXPECT_EQ(files({{"n1", 0, ""}}), std::vector<std::string>{"/runs/demo/1/a/trace.case-0007.json"});
  case_.params["trace"] = std::string();
  EXPECT_TRUE(files({{"n1", 0, ""}}).empty());
}

TEST_F(RankSpecs, ARepeatHasItsOwnFiles) {
  case_.params["trace"] = std::string("out.d/trace.json");
  const auto files = [this](std::int64_t repeat) {
    case_.repeat = repeat;
    const worker::CaseSpec spec = specs({{"n1", 0, ""}}).front();
    return std::pair(spec.log_file().string(), std::get<std::string>(spec.values.params.at("trace")));
  };
  EXPECT_EQ(files(1),
            (std::pair<std::string, std::string>("/runs/demo/1/logs/case-0007.log", "/runs/demo/1/out.d/trace.json")));
  EXPECT_EQ(files(2), (std::pair<std::string, std::string>("/runs/demo/1/logs/case-0007.repeat2.log",
                                                           "/runs/demo/1/out.d/trace.case-0007.repeat2.json")));
}

TEST_F(RankSpecs, RanksAreCountedOnEachMachine) {
  const std::vector<worker::CaseSpec> all =
      specs({{"n1", -1, "0,1,"}, {"n2", -1, "0,1,"}, {"n1", -1, "0,1,"}, {"n2", -1, "2,3,"}, {"n1", -1, "0,1,"}});
  const auto seen = [](const worker::CaseSpec& spec) {
    const worker::RankSpec& r = spec.ranks;
    return std::vector<std::int32_t>{r.rank, r.count, r.local_rank, r.local_count, r.sharer, r.sharer_count};
  };
  EXPECT_EQ(seen(all[0]), (std::vector<std::int32_t>{0, 5, 0, 3, 0, 3}));
  EXPECT_EQ(seen(all[1]), (std::vector<std::int32_t>{1, 5, 0, 2, 0, 1}));
  EXPECT_EQ(seen(all[2]), (std::vector<std::int32_t>{2, 5, 1, 3, 1, 3}));
  EXPECT_EQ(seen(all[3]), (std::vector<std::int32_t>{3, 5, 1, 2, 0, 1}));
  EXPECT_EQ(seen(all[4]), (std::vector<std::int32_t>{4, 5, 2, 3, 2, 3}));
  EXPECT_EQ(all[3].ranks.host_name, "n2");
  EXPECT_EQ(all[3].ranks.prefix, "case/0/");
  EXPECT_EQ(all[3].ranks.service.port, 4711);
  EXPECT_TRUE(all[0].shares_processors());
  EXPECT_FALSE(all[1].shares_processors());
}

TEST_F(RankSpecs, RanksThatAreBoundShareNoProcessors) {
  case_.run.bind = "cores";
  EXPECT_FALSE(specs({{"n1", -1, "0,1,"}, {"n1", -1, "0,1,"}}).front().shares_processors());
}

TEST_F(RankSpecs, DevicesGoAroundAsTheLauncherNumbersItsRanks) {
  device_ = device_of("cuda", 2);
  std::vector<std::int32_t> ordinals;
  for (const worker::CaseSpec& spec : specs({{"n1", 1, ""}, {"n1", 0, ""}, {"n1", -1, ""}, {"n2", -1, ""}}))
    ordinals.push_back(spec.device_ordinal);
  EXPECT_EQ(ordinals, (std::vector<std::int32_t>{1, 0, 0, 0}));
}

TEST_F(RankSpecs, OnTheProcessorEveryRankHasTheOneDevice) {
  for (const worker::CaseSpec& spec : specs({{"n1", 0, ""}, {"n1", 1, ""}})) EXPECT_EQ(spec.device_ordinal, 0);
}

}  // namespace
}  // namespace assay::host::run::test
