#include "forecast/measured_steps.hpp"

#include <gtest/gtest.h>

#include "unit/record/sample_record.hpp"

namespace assay::host::forecast {
namespace {

Json metric_of(double value) { return {{"value", value}, {"unit", ""}, {"direction", 0}}; }

Json ddp_on(int ranks, double step_ms) {
  Json r = ok_record();
  r["workload"] = "ddp";
  r["ranks"] = ranks;
  r["axes"] = {{"strategy", "flat"}, {"run.ranks", ranks}};
  r["params"] = {{"strategy", "flat"}, {"size", "tiny"}};
  r["phases"]["step"]["mean_ms"] = step_ms;
  r["phases"]["backward"]["mean_ms"] = 30.0;
  r["metrics"] = {{"collectives", metric_of(4)},
                  {"communication_bytes", metric_of(8e6)},
                  {"communication_ms", metric_of(2)},
                  {"exposed_ms", metric_of(1.5)},
                  {"overlap_share", metric_of(0)}};
  r["silent"] = {{"steps", 10}, {"step_mean_ms", step_ms - 2}, {"communication_tax", 0.1}};
  r["device"] = {{"kind", "cpu"}, {"ordinal", 0}, {"name", "AMD EPYC"}};
  r["threads"] = {{"count", 2}};
  return r;
}

Json all_reduce_on(int ranks, double bytes, double gbs) {
  Json r = ok_record();
  r["workload"] = "all_reduce";
  r["ranks"] = ranks;
  r["axes"] = Json::object();
  r["params"] = {{"collective", "reduce_scatter"}};
  r["metrics"] = {{"message_bytes", metric_of(bytes)}, {"algorithm_bandwidth_gbs", metric_of(gbs)}};
  return r;
}

// On a machine with 8 processors.
std::vector<ObservedCase> observed(const std::vector<record::CaseRecord>& records) {
  std::vector<ObservedCase> cases;
  for (const record::CaseRecord& r : records) cases.push_back({&r, 8});
  return cases;
}

TEST(MeasuredSteps, OneCaseOnSeveralNumbersOfRanksIsAFamily) {
  Json other = ddp_on(2, 90);
  other["params"]["strategy"] = other["axes"]["strategy"] = "naive";
  std::set<std::string> left_out;
  const std::vector<record::CaseRecord> records{ddp_on(4, 120), ddp_on(1, 100), ddp_on(4, 140), other,
                                                all_reduce_on(2, 8, 1)};
  const auto families = step_families(observed(records), left_out);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_TRUE(left_out.empty());
  EXPECT_EQ(families[0].label, "ddp strategy=flat");
  EXPECT_EQ(families[0].item_unit, "tokens");
  EXPECT_EQ(families[0].steps[0].ranks_at_full_speed, 4) << "8 processors, 2 threads a rank";
  ASSERT_EQ(families[0].steps.size(), 2u);
  EXPECT_EQ(families[0].steps[0].ranks, 1);
  const MeasuredStep& four = families[0].steps[1];
  EXPECT_EQ(four.ranks, 4);
  EXPECT_DOUBLE_EQ(four.step_s, 0.130) << "the mean of two records";
  EXPECT_EQ(four.records, 2);
  EXPECT_DOUBLE_EQ(*four.silent_s, 0.128);
  ASSERT_EQ(four.exchanges.size(), 1u);
  EXPECT_DOUBLE_EQ(four.exchanges[0].beside_s, 0.030);
  EXPECT_DOUBLE_EQ(*four.exchanges[0].busy_s, 0.002);
  EXPECT_DOUBLE_EQ(*four.exchanges[0].exposed_s, 0.0015);
  EXPECT_EQ(four.count(), 4);
  EXPECT_FALSE(four.overlaps());
}

// One of three machines has two of the four ranks.
TEST(MeasuredSteps, RanksOfSeveralMachinesShareNoProcessors) {
  Json r = ddp_on(4, 90);
  for (int rank = 0; rank < 4; ++rank)
    r["by_rank"].push_back({{"rank", rank}, {"host", rank < 2 ? "a" : rank < 3 ? "b" : "c"}});
  r["threads"]["count"] = 8;
  r["metrics"]["small_collectives"] = metric_of(3), r["metrics"]["small_communication_bytes"] = metric_of(3e3);
  std::set<std::string> left_out;
  const std::vector<record::CaseRecord> records{r};
  const auto families = step_families(observed(records), left_out);
  ASSERT_EQ(families.size(), 1u);
  const MeasuredStep& step = families[0].steps[0];
  EXPECT_EQ(step.link.text(), "AMD EPYC, gloo, between machines");
  EXPECT_EQ(step.machines, 3);
  EXPECT_EQ(ranks_of_machine(step, 64), 2);
  EXPECT_EQ(ranks_of_machine(step, 1), 1);
  EXPECT_EQ(crowding(2, step.ranks_at_full_speed), 2);
  ASSERT_EQ(step.exchanges[0].messages.size(), 2u);
  EXPECT_EQ(step.exchanges[0].messages[0].count, 3);
  EXPECT_EQ(step.exchanges[0].messages[0].bytes, 3e3);
  EXPECT_EQ(step.exchanges[0].messages[1].count, 1);
  EXPECT_TRUE(wire_points(families).empty()) << "of small and large ones the mean says nothing";
  MeasuredStep on_one = step;
  on_one.machines = 1;
  EXPECT_EQ(ranks_of_machine(on_one, 64), 64);
}

// A line that was edited, or that another program wrote.
TEST(MeasuredSteps, WhatCannotBeIsLeftOut) {
  const auto families_of = [](const char* where, const Json& value) {
    Json r = ddp_on(2, 90);
    if (std::string(where) == "ranks")
      r["ranks"] = value;
    else if (std::string(where) == "step")
      r["phases"]["step"]["mean_ms"] = value;
    else
      r["metrics"][where]["value"] = value;
    const std::vector<record::CaseRecord> records{r};
    std::set<std::string> left_out;
    return step_families(observed(records), left_out).size();
  };
  EXPECT_EQ(families_of("ranks", 2), 1u);
  EXPECT_EQ(families_of("ranks", 0), 0u);
  EXPECT_EQ(families_of("ranks", -2), 0u);
  EXPECT_EQ(families_of("step", 0.0), 0u);
  EXPECT_EQ(families_of("communication_bytes", -1.0), 0u);
  EXPECT_EQ(families_of("communication_ms", nullptr), 0u);
}

TEST(MeasuredSteps, CasesOfOtherThreadsAreOtherFamilies) {
  Json two = ddp_on(2, 90);
  two["axes"]["run.threads"] = 2;
  const std::vector<record::CaseRecord> records{ddp_on(2, 80), two};
  std::set<std::string> left_out;
  EXPECT_EQ(step_families(observed(records), left_out).size(), 2u);
}

TEST(MeasuredSteps, FamiliesOfOneLabelAreToldApart) {
  Json large = ddp_on(2, 90), contended = ddp_on(1, 80);
  large["params"]["size"] = "small";
  contended["validity"] = {{"verdict", "contended"}, {"text", "others"}};
  contended["metrics"]["overlap_share"] = metric_of(1);
  const std::vector<record::CaseRecord> records{ddp_on(2, 90), large, contended};
  std::set<std::string> left_out;
  const auto families = step_families(observed(records), left_out);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].label, "ddp strategy=flat size=tiny");
  EXPECT_EQ(families[1].label, "ddp strategy=flat size=small");
  EXPECT_EQ(families[0].doubts, (std::set<std::string>{"contended"}));
  EXPECT_FALSE(families[0].steps[0].overlaps()) << "one rank has nothing to overlap with";
  EXPECT_EQ(families[0].steps[0].link.text(), "AMD EPYC, gloo");
}

TEST(MeasuredSteps, WhatTellsNoCollectivesIsLeftOutByName) {
  Json failed = ddp_on(2, 90);
  failed["status"] = "failed";
  std::set<std::string> left_out;
  Json eager = ddp_on(2, 90), graph = ddp_on(2, 90), context = ddp_on(2, 90), owners = ddp_on(2, 90);
  eager["metrics"].erase("communication_ms");
  graph["metrics"].erase("communication_ms"), graph.erase("silent");
  graph["params"]["execution"] = "graph";
  context["workload"] = "context_parallel";
  context["metrics"].erase("collectives");
  context["metrics"]["messages"] = metric_of(18);
  owners["workload"] = "sharded_optimizer", owners["params"]["variant"] = "broadcast";
  Json replicas = ddp_on(4, 90);
  replicas["workload"] = "tensor_parallel", replicas["params"]["replicas"] = 2;
  replicas["metrics"]["messages"] = metric_of(18);
  const std::vector<record::CaseRecord> records{ok_record(), failed, eager, graph, context, owners, replicas};
  EXPECT_TRUE(step_families(observed(records), left_out).empty());
  EXPECT_EQ(
      left_out,
      (std::set<std::string>{
          "context_parallel: its 'messages' are of several kinds, without a figure for each",
          "ddp: it has no figure 'communication_ms'; run its experiment again",
          "ddp: its collectives have no times (as those of a graph), and it has no steps without communication to "
          "compare its steps with; run its experiment again",
          "decoder: it has no figure 'collectives', the number of a step's all-reduces, as ddp has it",
          "sharded_optimizer: its owners send parts one by one, and no figure says how many; of this workload "
          "variant = \"baseline\" and \"zero1\" can be forecast, of optimizers other than muon",
          "tensor_parallel: its ranks are replicas of a model that several share, and a forecast knows one of the two "
          "axes; records with replicas = 1 can be forecast"}));
}

// A step that was captured says how many collectives it has, and how long it takes without them.
TEST(MeasuredSteps, GraphsHaveNoTimesOfCollectives) {
  Json graph = ddp_on(2, 90), alone = ddp_on(1, 80);
  for (Json* r : {&graph, &alone}) {
    (*r)["metrics"].erase("communication_ms"), (*r)["metrics"].erase("exposed_ms");
    (*r)["params"]["execution"] = "graph";
    (*r)["params"]["strategy"] = (*r)["axes"]["strategy"] = "overlap_bucketed";
    (*r)["device"] = {{"kind", "cuda"}, {"ordinal", 0}, {"name", "NVIDIA H200"}};
  }
  alone.erase("silent");
  alone["metrics"] = Json::object();
  std::set<std::string> left_out;
  const auto families_of = [&](const Json& r) {
    const std::vector<record::CaseRecord> records{r, alone};
    return step_families(observed(records), left_out);
  };
  const auto families = families_of(graph);
  ASSERT_EQ(families.size(), 1u);
  ASSERT_EQ(families[0].steps.size(), 2u) << "one rank exchanges nothing";
  const MeasuredStep& step = families[0].steps[1];
  EXPECT_FALSE(step.is_timed());
  EXPECT_TRUE(step.overlaps());
  EXPECT_EQ(step.count(), 4);
  EXPECT_DOUBLE_EQ(*step.silent_s, 0.088);
  EXPECT_DOUBLE_EQ(step.exchanges[0].beside_s, 0.030);
  EXPECT_FALSE(step.assumes_beside);
  EXPECT_EQ(step.link.text(), "NVIDIA H200, nccl, in graphs");
  graph["phases"].erase("backward");
  const MeasuredStep bare = families_of(graph)[0].steps[1];
  EXPECT_DOUBLE_EQ(bare.exchanges[0].beside_s, 0.088 * 2 / 3);
  EXPECT_TRUE(bare.assumes_beside);
}

TEST(MeasuredSteps, EachWorkloadSaysInItsWayWhatItExchanges) {
  std::set<std::string> left_out;
  const auto step_of = [&](const char* workload, const Json& params, const Json& metrics) {
    Json r = ddp_on(4, 90);
    r["workload"] = workload, r["axes"] = {{"run.ranks", 4}}, r["params"] = params;
    r["phases"]["forward"] = {{"mean_ms", 10.0}};
    r["metrics"] = {{"communication_bytes", metric_of(8e6)}, {"communication_ms", metric_of(2)}};
    r["metrics"].update(metrics);
    const std::vector<record::CaseRecord> records{r};
    const auto families = step_families(observed(records), left_out);
    return families.empty() ? MeasuredStep{} : families[0].steps[0];
  };
  const MeasuredStep fsdp = step_of("fsdp", {{"reshard", true}}, {{"messages", metric_of(40)}});
  EXPECT_EQ(fsdp.computation, Computation::partly);
  ASSERT_EQ(fsdp.exchanges.size(), 1u);
  EXPECT_EQ(fsdp.exchanges[0].messages[0].collective, Collective::all_gather);
  EXPECT_EQ(fsdp.exchanges[0].messages[0].count, 40);
  EXPECT_TRUE(fsdp.overlaps());
  EXPECT_EQ(fsdp.exchanges[0].unhidden, 2);

  const MeasuredStep parts = step_of("tensor_parallel", {{"sequence_parallel", true}}, {{"messages", metric_of(26)}});
  EXPECT_EQ(parts.computation, Computation::shared);
  EXPECT_EQ(parts.exchanges[0].messages[0].collective, Collective::all_gather);
  EXPECT_FALSE(parts.overlaps());
  const MeasuredStep sums = step_of("tensor_parallel", {{"sequence_parallel", false}}, {{"messages", metric_of(26)}});
  EXPECT_EQ(sums.exchanges[0].messages[0].collective, Collective::all_reduce);

  // Two chunks of one layer: 2 (10 + 4) + 2 messages, of which the first chunk's 10 of the layer have products beside
  // them. Forward and backward take 10 and 30 ms, and 4 of them are waits.
  const MeasuredStep chunks =
      step_of("tensor_parallel", {{"sequence_parallel", true}, {"communication_chunks", 2}, {"layers", 1}},
              {{"messages", metric_of(30)}, {"exposed_ms", metric_of(4)}});
  EXPECT_TRUE(chunks.overlaps());
  EXPECT_EQ(chunks.exchanges[0].unhidden, 20);
  EXPECT_DOUBLE_EQ(chunks.exchanges[0].beside_s, 0.036);
  // Three of two layers and two micro-batches, made again in backward: 2 * (3 (4 * 2 + 1 + 2) + 2) messages, of which
  // 2 * 2 * 2 * 5 have products beside them.
  const MeasuredStep summed_chunks = step_of("tensor_parallel",
                                             {{"sequence_parallel", false},
                                              {"communication_chunks", 3},
                                              {"layers", 2},
                                              {"accumulation_steps", 2},
                                              {"activation_checkpointing", true}},
                                             {{"messages", metric_of(70)}, {"exposed_ms", metric_of(4)}});
  EXPECT_EQ(summed_chunks.exchanges[0].unhidden, 30);

  const MeasuredStep zero1 = step_of("sharded_optimizer", {{"variant", "zero1"}}, {{"buckets", metric_of(5)}});
  EXPECT_EQ(zero1.computation, Computation::partly);
  ASSERT_EQ(zero1.exchanges[0].messages.size(), 2u);
  EXPECT_EQ(zero1.exchanges[0].messages[0].collective, Collective::reduce_scatter);
  EXPECT_EQ(zero1.exchanges[0].messages[1].bytes, 4e6);
  EXPECT_EQ(zero1.count(), 10);

  const MeasuredStep stages =
      step_of("pipeline_parallel", {{"accumulation_steps", 8}, {"virtual_stages", 2}, {"layers", 16}},
              {{"messages", metric_of(32)}});
  EXPECT_EQ(stages.computation, Computation::shared);
  EXPECT_FALSE(stages.is_timed()) << "times hold waiting for neighbours";
  EXPECT_EQ(stages.exchanges[0].messages[0].collective, Collective::send_receive);
  EXPECT_EQ(stages.count(), 6) << "to the last of 4 ranks, and back";
  EXPECT_DOUBLE_EQ(stages.exchanges[0].messages[0].bytes, 6 * 8e6 / 32);
  ASSERT_TRUE(stages.pipeline);
  EXPECT_EQ(stages.pipeline->micro_batches, 8);
  EXPECT_EQ(stages.pipeline->virtual_stages, 2);
  EXPECT_EQ(stages.pipeline->layers, 16);
  EXPECT_FALSE(stages.pipeline->head_layers) << "an older record";
  EXPECT_TRUE(stages.pipeline->by_work);
  const MeasuredStep even =
      step_of("pipeline_parallel", {{"accumulation_steps", 8}, {"balance", "layers"}, {"layers", 16}},
              {{"messages", metric_of(32)}, {"head_layers", metric_of(1.5)}});
  ASSERT_TRUE(even.pipeline);
  EXPECT_EQ(even.pipeline->head_layers, 1.5);
  EXPECT_FALSE(even.pipeline->by_work);

  const Json experts{{"expert_parallel", true}, {"experts", 8}, {"experts_per_token", 2},
                     {"d_model", 10},           {"layers", 4},  {"first_dense_layers", 1},
                     {"expert_d_ff", 20}};
  const MeasuredStep moe = step_of("moe", experts,
                                   {{"dispatch_bytes", metric_of(3e6)},
                                    {"combine_bytes", metric_of(1.5e6)},
                                    {"expert_exchange_ms", metric_of(5)},
                                    {"expert_exchange_exposed_ms", metric_of(4)},
                                    {"expert_exchanges", metric_of(16)},
                                    {"collectives", metric_of(3)},
                                    {"rank_imbalance", metric_of(1.25)},
                                    {"active_parameters", metric_of(7200)}});
  ASSERT_EQ(moe.exchanges.size(), 2u);
  EXPECT_EQ(moe.exchanges[0].messages[0].collective, Collective::all_to_all);
  EXPECT_DOUBLE_EQ(moe.exchanges[0].messages[0].bytes, 6e6) << "those that stay on the rank count, as in all_reduce";
  EXPECT_FALSE(moe.exchanges[0].overlaps);
  EXPECT_DOUBLE_EQ(*moe.exchanges[0].exposed_s, 0.004);
  EXPECT_EQ(moe.exchanges[1].messages[0].count, 3);
  EXPECT_TRUE(moe.exchanges[1].overlaps);
  ASSERT_TRUE(moe.experts);
  EXPECT_DOUBLE_EQ(moe.experts->imbalance, 1.25);
  EXPECT_DOUBLE_EQ(moe.experts->share_of_compute, 3 * 2 * 10 * 20 * 3 / 7200.0);
  EXPECT_EQ(moe.experts->experts, 8);
  EXPECT_TRUE(left_out.empty());
  EXPECT_EQ(step_of("moe", experts, Json::object()).count(), 0);
  EXPECT_EQ(left_out, (std::set<std::string>{
                          "moe: it has no figure 'dispatch_bytes', 'combine_bytes', 'expert_exchanges', "
                          "'expert_exchange_ms', 'expert_exchange_exposed_ms', 'collectives', 'rank_imbalance', "
                          "'active_parameters'; run its experiment again"}));
}

// Records of before a parameter existed.
TEST(MeasuredSteps, WhatARecordDoesNotSayIsTakenToAgree) {
  const Json before = ddp_on(1, 80);
  Json today = ddp_on(2, 90);
  today["params"]["last_bucket_mb"] = 0.0;
  std::set<std::string> left_out;
  const std::vector<record::CaseRecord> records{before, today};
  const auto families = step_families(observed(records), left_out);
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].steps.size(), 2u);
  EXPECT_EQ(families[0].taken_to_agree, (std::set<std::string>{"last_bucket_mb=0"}));

  Json other = today;
  other["params"]["last_bucket_mb"] = 25.0;
  const std::vector<record::CaseRecord> several{before, today, other};
  const auto apart = step_families(observed(several), left_out);
  ASSERT_EQ(apart.size(), 3u) << "nothing says which of two it belongs to";
  EXPECT_EQ(apart[0].label, "ddp strategy=flat last_bucket_mb=not said");
  EXPECT_EQ(apart[2].label, "ddp strategy=flat last_bucket_mb=25");
}

TEST(MeasuredSteps, TheWireIsToldByCollectivesAlone) {
  const std::vector<record::CaseRecord> records{all_reduce_on(2, 1e6, 2), ddp_on(2, 90)};
  const auto points = wire_points(observed(records));
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].collective, Collective::reduce_scatter);
  EXPECT_EQ(points[0].ranks, 2);
  EXPECT_DOUBLE_EQ(points[0].seconds, 1e6 / 2e9);
  std::set<std::string> left_out;
  Json beside = ddp_on(4, 90);
  beside["params"]["strategy"] = beside["axes"]["strategy"] = "overlap_bucketed";
  beside["params"]["size"] = "small";
  Json chunks = ddp_on(4, 90);
  chunks["workload"] = "tensor_parallel", chunks["params"]["communication_chunks"] = 2, chunks["params"]["layers"] = 1;
  chunks["metrics"]["messages"] = metric_of(18);
  const std::vector<record::CaseRecord> steps{ddp_on(1, 80), ddp_on(2, 90), beside, chunks};
  const auto of_steps = wire_points(step_families(observed(steps), left_out));
  ASSERT_EQ(of_steps.size(), 1u) << "not of one rank, nor beside the backward or the next chunk";
  EXPECT_DOUBLE_EQ(of_steps[0].bytes, 2e6);
  EXPECT_DOUBLE_EQ(of_steps[0].seconds, 0.0005);
}

}  // namespace
}  // namespace assay::host::forecast
