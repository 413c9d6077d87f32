#include "run/plan.hpp"

#include <fstream>

#include "experiment/hash.hpp"
#include "planned_runs.hpp"
#include "support/temporary_folder.hpp"
#include "telemetry/cpu_nodes.hpp"

namespace assay::host::run::test {
namespace {

using Identity = std::vector<std::pair<std::string, std::string>>;
const Identity plain_identity = {{"file:plugin", "00ff"},
                                 {"device.kind", "cpu"},
                                 {"device.name", "a device"},
                                 {"device.libraries", "demo 1.0"},
                                 {"device.driver", ""}};

Identity with(Identity identity, const std::string& key, const std::string& text) {
  identity.emplace_back(key, text);
  return identity;
}

CasePlan plan_one(const Machine& machine, const experiment::Case& c) {
  static std::vector<std::unique_ptr<std::pair<experiment::Experiment, RunPlan>>>
      kept;  // the plan of a case refers to the devices of the whole plan
  kept.push_back(std::make_unique<std::pair<experiment::Experiment, RunPlan>>());
  auto& [experiment, plan] = *kept.back();
  experiment = experiment_of({c});
  plan = make_plan(experiment, machine.basis);
  return plan.cases.front();
}

// What "auto" means is known once the device is, and is what the case is, in its record and its identity.
TEST(Plan, KnowsWhatAChoiceStandsForOnItsDevice) {
  Machine machine;
  plugin::ParamSpec amp;
  amp.name = "amp", amp.type = plugin::ParamType::text;
  amp.default_value = std::string("auto"), amp.choices = {"auto", "fp16", "off"};
  machine.schema.params.push_back(amp);
  machine.schema.presets = {{"amp", "auto", "", "", "cpu", "amp", std::string("off")},
                            {"amp", "auto", "", "", "cuda", "amp", std::string("fp16")}};
  experiment::Case c = small_case(0, 1), off = small_case(0, 1);
  c.params["amp"] = std::string("auto"), off.params["amp"] = std::string("off");
  EXPECT_EQ(plan_one(machine, c).values.params.at("amp"), Value(std::string("off")));
  EXPECT_EQ(plan_one(machine, c).hash, plan_one(machine, off).hash);
  machine.device = device_of("cuda", 1);
  EXPECT_EQ(plan_one(machine, c).values.params.at("amp"), Value(std::string("fp16")));
  EXPECT_NE(plan_one(machine, c).hash, plan_one(machine, off).hash);
}

// By these its records are found again, and by what the experiment says where they reached no device.
TEST(Plan, AsPlannedTheExperimentHasTheValuesOfTheDevice) {
  Machine machine;
  plugin::ParamSpec amp;
  amp.name = "amp", amp.type = plugin::ParamType::text;
  amp.default_value = std::string("auto"), amp.choices = {"auto", "off"};
  machine.schema.params.push_back(amp);
  machine.schema.presets = {{"amp", "auto", "", "", "cpu", "amp", std::string("off")}};
  experiment::Case c = small_case(0, 1), off = small_case(1, 2);
  c.params["amp"] = std::string("auto"), off.params["amp"] = std::string("off");
  const experiment::Experiment experiment = experiment_of({c, off});
  const experiment::Experiment planned = as_planned(experiment, make_plan(experiment, machine.basis));
  EXPECT_EQ(planned.cases[0].params.at("amp"), Value(std::string("off")));
  EXPECT_EQ(planned.cases[0].params_of_any_device, c.params);
  EXPECT_FALSE(planned.cases[1].params_of_any_device.has_value());
}

// Ranks that each do the whole work looked like ranks that had divided it: their tokens counted as often as they were.
TEST(Plan, RanksThatDoNotWorkTogetherAreRefusedUnlessCopiesAreAskedFor) {
  Machine machine;
  machine.schema.ranks = plugin::RanksAre::copies;
  experiment::Case c = small_case(0);
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  c.run.ranks = 2;
  const auto refusal = plan_one(machine, c).refusal;
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->status, record::Status::unsupported);
  EXPECT_EQ(refusal->reason,
            "run.ranks: ranks of workload 'demo' do not work together: each of 2 would do the whole work; set "
            "run.ranks = 1, or run.copies = true to run 2 copies side by side");
  const std::string hash = plan_one(machine, c).hash;
  c.run.copies = true;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  EXPECT_NE(plan_one(machine, c).hash, hash);
  c.params["trace"] = std::string("x.json");  // each writes its own file
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
}

// One that cannot be counted is refused before it starts, with what to do.
TEST(Plan, ACaseThatNcuCannotCountIsRefused) {
  Machine machine;
  std::string problem;
  int asked = 0;
  machine.basis.problem_of_ncu = [&] {
    ++asked;
    return problem;
  };
  experiment::Case c = small_case(0);
  machine.device = device_of("cuda", 2);
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  EXPECT_EQ(asked, 0) << "nobody wants it";
  c.profile.ncu = true;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  EXPECT_EQ(asked, 1);
  const auto why = [&](const experiment::Case& refused) {
    const auto refusal = plan_one(machine, refused).refusal;
    EXPECT_TRUE(refusal && refusal->status == record::Status::unsupported);
    return refusal ? refusal->reason : "";
  };
  experiment::Case several = c, here = c, both = c;
  several.run.ranks = 2, here.run.isolate = false, both.profile.nsys = true;
  EXPECT_TRUE(why(several).ends_with("set run.ranks = 1")) << why(several);
  EXPECT_TRUE(why(here).ends_with("leave out --in-process and isolate = false")) << why(here);
  EXPECT_TRUE(why(both).ends_with("leave out profile.nsys")) << why(both);
  problem = "ncu is not on the PATH";
  EXPECT_EQ(why(c), "profile.ncu: ncu is not on the PATH");
  machine.device = device_of("cpu", 1);
  EXPECT_TRUE(why(c).ends_with("the case runs on the cpu device; leave it out, or set run.device = \"cuda\""))
      << why(c);
}

TEST(Plan, RanksUnderALauncherAreNoCopiesByThemselves) {
  Machine machine;
  machine.schema.ranks = plugin::RanksAre::copies;
  machine.basis.launched = launch_of(2);
  EXPECT_TRUE(plan_one(machine, small_case(0)).refusal.has_value());
}

TEST(Plan, RanksThatWorkTogetherAreNoCopies) {
  Machine machine;
  machine.schema.ranks = plugin::RanksAre::cooperating;
  experiment::Case c = small_case(0);
  c.run.ranks = 2;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  c.run.copies = true;
  ASSERT_TRUE(plan_one(machine, c).refusal.has_value());
  EXPECT_EQ(
      plan_one(machine, c).refusal->reason,
      "run.copies: ranks of workload 'demo' work together and are no copies of one another; leave out run.copies");
}

// As before: nobody knows, and the record says so.
TEST(Plan, RanksOfAPluginThatCannotSayRun) {
  Machine machine;
  machine.schema.ranks = plugin::RanksAre::unsaid;
  experiment::Case c = small_case(0);
  c.run.ranks = 2;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  c.run.copies = true;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
}

TEST(Plan, HasEveryCaseInTheExperimentsOrder) {
  const Machine machine;
  const experiment::Experiment experiment = experiment_of({small_case(0, 1), small_case(1, 2), small_case(2, 3)});
  const RunPlan plan = make_plan(experiment, machine.basis);
  ASSERT_EQ(plan.cases.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.cases[i].values.index, experiment.cases[i].index);
    EXPECT_EQ(plan.cases[i].values.params, experiment.cases[i].params);
    EXPECT_EQ(plan.cases[i].ranks, 1);
    EXPECT_FALSE(plan.cases[i].refusal.has_value());
    EXPECT_FALSE(plan.cases[i].is_finished);
    EXPECT_FALSE(plan.cases[i].in_process);
  }
  EXPECT_EQ(plan.to_run().size(), 3u);
}

TEST(Plan, AsksOnceForEachDevice) {
  const Machine machine;
  experiment::Case on_cuda = small_case(2);
  on_cuda.run.device = "cuda";
  const experiment::Experiment experiment =
      experiment_of({small_case(0, 1), small_case(1, 2), on_cuda, small_case(3, 3)});
  const RunPlan plan = make_plan(experiment, machine.basis);
  EXPECT_EQ(machine.asked, (std::vector<std::string>{"auto", "cuda"}));
  EXPECT_EQ(&plan.cases[0].device, &plan.cases[3].device);
  EXPECT_NE(&plan.cases[0].device, &plan.cases[2].device);
}

TEST(Plan, TheSettingsOfTheRunAreTheFirstCases) {
  experiment::Case first = small_case(0), second = small_case(1);
  first.run.allow = {"oom"};
  first.run.wireup_timeout = std::chrono::seconds(7);
  second.run.isolate = false;
  const RunWideSettings settings = run_wide_settings(experiment_of({first, second}));
  EXPECT_EQ(settings.allow, std::vector<std::string>{"oom"});
  EXPECT_EQ(settings.wireup_timeout, std::chrono::seconds(7));
  EXPECT_TRUE(settings.isolate);
}

// Results of older runs are found by these.
TEST(PlanHash, IsMadeOfPluginDeviceAndCase) {
  const Machine machine;
  EXPECT_EQ(plan_one(machine, small_case(0)).hash, experiment::case_hash(small_case(0), "demo", plain_identity));
}

TEST(PlanHash, NumbersTheRanksWhenThereAreSeveral) {
  const Machine machine;
  experiment::Case c = small_case(0);
  c.run.ranks = 3;
  EXPECT_EQ(plan_one(machine, c).hash, experiment::case_hash(c, "demo", with(plain_identity, "ranks", "3")));
  c.run.ranks = 1;
  EXPECT_EQ(plan_one(machine, c).hash, experiment::case_hash(c, "demo", plain_identity));
}

TEST(PlanHash, TakesAnInputByItsContent) {
  const Machine machine;
  const assay::test::TemporaryFolder folder;
  const std::string path = (folder / "weights").string();
  std::ofstream(path) << "some bytes";
  experiment::Case c = small_case(0);
  c.params["weights"] = path;
  const std::string before = plan_one(machine, c).hash;
  EXPECT_EQ(before, experiment::case_hash(c, "demo", with(plain_identity, "file:input.weights", sha256_of_file(path))));
  std::ofstream(path) << "other bytes";
  EXPECT_NE(plan_one(machine, c).hash, before);
}

TEST(PlanHash, AnInputThatCannotBeReadEndsThePlanning) {
  const Machine machine;
  experiment::Case c = small_case(0);
  c.params["weights"] = std::string("/no/such/file");
  EXPECT_THROW(make_plan(experiment_of({c}), machine.basis), std::system_error);
}

// Two builds of a library may have one version.
TEST(PlanHash, KnowsTheBuildsOfTheLibrariesThatTheDeviceBrings) {
  Machine machine;
  machine.device.libraries = {{"libdnnl.so.2", "0a"}};
  const std::string before = plan_one(machine, small_case(0)).hash;
  EXPECT_EQ(before, experiment::case_hash(small_case(0), "demo", with(plain_identity, "library:libdnnl.so.2", "0a")));
  machine.device.libraries = {{"libdnnl.so.2", "0b"}};
  EXPECT_NE(plan_one(machine, small_case(0)).hash, before);
}

TEST(PlanHash, KnowsNothingOfADeviceThatIsNone) {
  Machine machine;
  machine.device.status = record::Status::unsupported;
  EXPECT_EQ(plan_one(machine, small_case(0)).hash,
            experiment::case_hash(small_case(0), "demo", {{"file:plugin", "00ff"}}));
}

TEST(PlanSkips, ACaseThatDiffersInASettingWithoutHashIsAnother) {
  Machine machine;
  experiment::Case done = small_case(0), open = small_case(1);
  done.axes = {{"run.log_limit", std::string("4KiB")}};
  open.axes = {{"run.log_limit", std::string("8KiB")}};
  done.run.log_limit_bytes = 4096, open.run.log_limit_bytes = 8192;
  const std::string hash = experiment::case_hash(done, "demo", plain_identity);
  ASSERT_EQ(experiment::case_hash(open, "demo", plain_identity), hash);
  machine.basis.finished = {finished_key(hash, done.axes)};
  const experiment::Experiment experiment = experiment_of({done, open});
  const RunPlan plan = make_plan(experiment, machine.basis);
  EXPECT_TRUE(plan.cases[0].is_finished);
  EXPECT_FALSE(plan.cases[1].is_finished);
}

TEST(PlanSkips, ARepeatByItsNumber) {
  Machine machine;
  std::vector<experiment::Case> cases(3, small_case(0));
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].repeat = static_cast<std::int64_t>(i + 1);
  const std::string hash = experiment::case_hash(cases[0], "demo", plain_identity);
  // The run began without repeats, and has had the third since.
  machine.basis.finished = {finished_key(hash, {}), finished_key(hash, {}, 3)};
  const experiment::Experiment experiment = experiment_of(cases);
  const RunPlan plan = make_plan(experiment, machine.basis);
  ASSERT_EQ(plan.to_run().size(), 1u);
  EXPECT_EQ(plan.to_run().front()->values.repeat, 2);
}

// Growth at the front gives a new case the number of an old one, whose files must stay.
TEST(Plan, CasesThatHaveHadOneNumberHaveFilesOfTheirOwn) {
  Machine machine;
  experiment::Case first = small_case(0, 1), second = small_case(1, 2), third = small_case(0, 3);
  first.axes = {{"batch_size", std::int64_t{1}}}, second.axes = {{"batch_size", std::int64_t{2}}};
  third.axes = {{"batch_size", std::int64_t{3}}};
  machine.basis.cases_of_index = {{0, {finished_key("", first.axes)}}, {1, {finished_key("", second.axes)}}};
  EXPECT_EQ(plan_one(machine, first).values.namesake, 1);
  EXPECT_EQ(plan_one(machine, third).values.namesake, 2);
  first.index = 1, second.index = 2;
  EXPECT_EQ(plan_one(machine, first).values.namesake, 2);
  EXPECT_EQ(plan_one(machine, second).values.namesake, 1) << "nobody has had that number";
  worker::CaseSpec spec;
  spec.values = third;
  spec.values.namesake = 2, spec.values.repeat = 3;
  EXPECT_EQ(spec.file_stem(), "case-0001-2.repeat3");
}

TEST(PlanSkips, WhatTheResumedRunHasFinished) {
  Machine machine;
  const experiment::Case finished = small_case(1, 2);
  machine.basis.finished = {finished_key(experiment::case_hash(finished, "demo", plain_identity), finished.axes),
                            "of a case that is no more"};
  const experiment::Experiment experiment = experiment_of({small_case(0, 1), small_case(1, 2), small_case(2, 3)});
  const RunPlan plan = make_plan(experiment, machine.basis);
  EXPECT_TRUE(plan.cases[1].is_finished);
  const std::vector<const CasePlan*> to_run = plan.to_run();
  ASSERT_EQ(to_run.size(), 2u);
  EXPECT_EQ(to_run[0], &plan.cases[0]);
  EXPECT_EQ(to_run[1], &plan.cases[2]);
}

TEST(PlanRefusal, SaysWhyTheDeviceIsNone) {
  Machine machine;
  machine.device.status = record::Status::unsupported;
  machine.device.reason = "no cuda backend is installed";
  experiment::Case c = small_case(0);
  c.run.ranks = 4;
  const CasePlan planned = plan_one(machine, c);
  ASSERT_TRUE(planned.refusal.has_value());
  EXPECT_EQ(planned.refusal->status, record::Status::unsupported);
  EXPECT_EQ(planned.refusal->reason, "no cuda backend is installed");
  EXPECT_EQ(planned.ranks, 1);
}

TEST(PlanRefusal, MoreRanksThanTheLauncherStarted) {
  Machine machine;
  machine.basis.launched = launch_of(2);
  experiment::Case c = small_case(0);
  c.run.ranks = 3;
  const CasePlan planned = plan_one(machine, c);
  ASSERT_TRUE(planned.refusal.has_value());
  EXPECT_EQ(planned.refusal->status, record::Status::unsupported);
  EXPECT_EQ(planned.refusal->reason,
            "run.ranks: 3 ranks were asked for, but Slurm has started 2; start as many, or lower run.ranks");
  EXPECT_EQ(planned.ranks, 3);
  c.run.ranks = 2;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
}

TEST(PlanRefusal, SeveralRanksInOneProcess) {
  Machine machine;
  experiment::Case c = small_case(0);
  c.run.ranks = 2;
  c.run.isolate = false;
  const std::string reason =
      "run.ranks: several ranks need a worker process each; leave out --in-process and isolate = false";
  ASSERT_TRUE(plan_one(machine, c).refusal.has_value());
  EXPECT_EQ(plan_one(machine, c).refusal->reason, reason);
  c.run.isolate = true;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  machine.basis.in_process = true;
  ASSERT_TRUE(plan_one(machine, c).refusal.has_value());
  EXPECT_EQ(plan_one(machine, c).refusal->reason, reason);
}

TEST(PlanRefusal, AColdStartInAProcessThatIsWarm) {
  Machine machine;
  experiment::Case c = small_case(0);
  c.measure.prepare = false;
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  machine.basis.in_process = true;
  ASSERT_TRUE(plan_one(machine, c).refusal.has_value());
  EXPECT_EQ(plan_one(machine, c).refusal->reason,
            "measure.prepare = false: a case starts cold only in a separate process; leave out --in-process and "
            "isolate = false");
}

TEST(PlanRanks, OneRankRunsInThisProcessWhenAskedTo) {
  Machine machine;
  experiment::Case c = small_case(0);
  c.run.isolate = false;
  EXPECT_TRUE(plan_one(machine, c).in_process);
  EXPECT_FALSE(plan_one(machine, c).refusal.has_value());
  machine.basis.in_process = true;
  EXPECT_TRUE(plan_one(machine, small_case(0)).in_process);
}

TEST(PlanRanks, AutoIsOneOrTheLaunchersNumber) {
  Machine machine;
  EXPECT_EQ(plan_one(machine, small_case(0)).ranks, 1);
  machine.basis.launched = launch_of(6);
  EXPECT_EQ(plan_one(machine, small_case(0)).ranks, 6);
}

TEST(PlanRanks, AllIsOnePerDeviceOrTheLaunchersNumber) {
  Machine machine;
  experiment::Case c = small_case(0);
  c.run.ranks = experiment::ranks_all;
  EXPECT_EQ(plan_one(machine, c).ranks, telemetry::cpu_node_count());
  machine.device = device_of("cuda", 4);
  EXPECT_EQ(plan_one(machine, c).ranks, 4);
  machine.device = device_of("cuda", 0);
  EXPECT_EQ(plan_one(machine, c).ranks, 1);
  machine.basis.launched = launch_of(8);
  EXPECT_EQ(plan_one(machine, c).ranks, 8);
}

}  // namespace
}  // namespace assay::host::run::test
