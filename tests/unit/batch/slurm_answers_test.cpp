#include "batch/slurm_answers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace assay::host::batch {
namespace {

QueuedJob only_job(const std::string& line) {
  const auto jobs = parse_queue(line + "\n");
  if (jobs.size() != 1) throw std::invalid_argument("no job: " + line);
  return jobs.front();
}

NodeState node_in(const std::string& state, const std::string& gres = "gpu:2") {
  return parse_nodes("n1|" + state + "|8|" + gres + "|(null)|1:00:00|debug*\n").at(0);
}

TEST(Queue, WhatIsNoLineOfAJobIsLeftOut) {
  EXPECT_TRUE(parse_queue("").empty());
  EXPECT_TRUE(parse_queue("\n\n").empty());
  for (const char* line : {"slurm_load_jobs error: Unable to contact slurm controller", "1|1|0|RUNNING|n1|None",
                           "x|1|0|RUNNING|n1|None|c", "1|x|0|RUNNING|n1|None|c", "1|1|0-|RUNNING|n1|None|c",
                           "1|1|3-2|RUNNING|n1|None|c", "1|1|0-3:0|RUNNING|n1|None|c", "1|1|a|RUNNING|n1|None|c",
                           "-1|1|0|RUNNING|n1|None|c", "99999999999999999999|1|0|RUNNING|n1|None|c"})
    EXPECT_TRUE(parse_queue(line).empty()) << line;
}

TEST(Queue, GarbageHidesNoNeighbour) {
  const auto jobs = parse_queue("garbage\n5|5|N/A|RUNNING|n1|None|(null)\n|||||||\n6|6|N/A|PENDING||Priority|x");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].job, "6");
  EXPECT_EQ(jobs[1].comment, "x");
}

TEST(Queue, ALargeArrayInOneLine) {
  const QueuedJob job = only_job("7|7|0-9999%16|PENDING||JobArrayTaskLimit|assay:1");
  EXPECT_TRUE(job.has_task(0));
  EXPECT_TRUE(job.has_task(9999));
  EXPECT_FALSE(job.has_task(10000));
}

TEST(Queue, ALargeArrayTaskByTask) {
  std::string text, list;
  for (int task = 0; task < 10000; ++task) {
    text += fmt::format("{}|7|{}|RUNNING|n1|None|assay:1\n", 100 + task, task);
    if (task % 3 == 0) list += fmt::format("{}{}", list.empty() ? "" : ",", task);
  }
  EXPECT_EQ(parse_queue(text).size(), 10000U);
  const QueuedJob listed = only_job("7|7|" + list + "%4|PENDING||Priority|x");
  EXPECT_TRUE(listed.has_task(9999));
  EXPECT_FALSE(listed.has_task(9998));
}

TEST(Queue, ACutListMayHoldWhatLiesBeyond) {
  const QueuedJob cut = only_job("7|7|1,3-5,1...%2|PENDING||Priority|x");
  EXPECT_TRUE(cut.is_cut);
  EXPECT_FALSE(cut.has_task(2));
  EXPECT_TRUE(cut.has_task(4));
  EXPECT_TRUE(cut.has_task(6));
  EXPECT_TRUE(only_job("7|7|1...|PENDING||Priority|x").has_task(12));
}

TEST(Queue, EveryStateThatIsNotOverIsActive) {
  for (const char* state :
       {"PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED",
        "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
    EXPECT_TRUE(only_job(fmt::format("7|7|0|{}||None|x", state)).is_active()) << state;
  for (const char* state : {"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE",
                            "OUT_OF_MEMORY", "REVOKED"})
    EXPECT_FALSE(only_job(fmt::format("7|7|0|{}||None|x", state)).is_active()) << state;
}

TEST(Queue, OneThatWaitsForItsNextStartDoesNotRun) {
  for (const char* state :
       {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
    EXPECT_TRUE(only_job(fmt::format("7|7|0|{}||None|x", state)).is_pending()) << state;
  for (const char* state : {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"})
    EXPECT_FALSE(only_job(fmt::format("7|7|0|{}|n1|None|x", state)).is_pending()) << state;
}

TEST(Submitted, TheNumberAndNothingElse) {
  EXPECT_EQ(parse_submitted("123\n"), (SubmittedJob{"123", ""}));
  EXPECT_EQ(parse_submitted("123;cluster\n"), (SubmittedJob{"123", "cluster"}));
  EXPECT_EQ(text_of({"123", "cluster"}), "123;cluster");
  EXPECT_EQ(parse_submitted("sbatch: a note of the site\n123\n"), (SubmittedJob{"123", ""}));
  EXPECT_EQ(parse_submitted("123\n4000\n"), std::nullopt) << "what is left of a budget may be a number, too";
  EXPECT_EQ(parse_submitted("Submitted batch job 123\n"), std::nullopt);
  EXPECT_EQ(parse_submitted(""), std::nullopt);
  EXPECT_EQ(parse_submitted("12x\n"), std::nullopt);
  EXPECT_EQ(parse_submitted("-1\n"), std::nullopt);
}

TEST(NodeStates, UsableOnesNowOrLater) {
  for (const char* state :
       {"idle",     "idle~",      "idle#",        "idle%",       "idle!",         "idle@",         "idle^",
        "idle-",    "planned",    "allocated",    "allocated+",  "allocated#",    "mixed",         "mixed-",
        "mixed@",   "completing", "powered_down", "powering_up", "powering_down", "reboot_issued", "reboot_requested",
        "rebooted", "blocked",    "perfctrs"})
    EXPECT_TRUE(node_in(state).is_usable()) << state;
}

TEST(NodeStates, UnusableOnes) {
  for (const char* state :
       {"down",      "down*",     "down~",    "down#",     "down$",  "drained",    "drained*", "drained$", "draining",
        "draining@", "draining*", "drain",    "fail",      "fail*",  "failing",    "failing*", "unknown",  "unknown*",
        "maint",     "maint*",    "reserved", "reserved*", "idle*",  "allocated*", "mixed*",   "idle$",    "allocated$",
        "mixed$",    "error",     "error*",   "inval",     "future", "future*"})
    EXPECT_FALSE(node_in(state).is_usable()) << state;
}

TEST(NodeStates, Gpus) {
  EXPECT_EQ(node_in("idle", "(null)").gpus(), 0);
  EXPECT_EQ(node_in("idle", "gpu:8").gpus(), 8);
  EXPECT_EQ(node_in("idle", "gpu:h100:8").gpus(), 8);
  EXPECT_EQ(node_in("idle", "gpu:h100:8(S:0-1)").gpus(), 8);
  EXPECT_EQ(node_in("idle", "gpu:a100:4(S:0,2),gpu:v100:2(S:1),mps:400").gpus(), 6);
  EXPECT_EQ(node_in("idle", "mps:gpus:400,shard:8").gpus(), 0);
  EXPECT_EQ(node_in("idle", "gpu:a100_1g.5gb:7").gpus(), 7);
}

TEST(NodeStates, LinesThatAreNone) {
  EXPECT_TRUE(parse_nodes("sinfo: error: cannot\n\n|idle|8|||1:00|x\nn1|idle|8\n").empty());
  const NodeState node = parse_nodes("n1|idle|8+|(null)|(null)|infinite|debug*\n").at(0);
  EXPECT_EQ(node.cpus, 8);
  EXPECT_EQ(node.gres, "");
  EXPECT_EQ(node.features, "");
}

TEST(Times, AsSlurmWritesThem) {
  EXPECT_EQ(parse_time_limit_s("30"), 1800);
  EXPECT_EQ(parse_time_limit_s("30:15"), 1815);
  EXPECT_EQ(parse_time_limit_s("4:00:00"), 14400);
  EXPECT_EQ(parse_time_limit_s("1-02"), 93600);
  EXPECT_EQ(parse_time_limit_s("1-02:03"), 93780);
  EXPECT_EQ(parse_time_limit_s("1-02:03:04"), 93784);
  for (const char* none : {"infinite", "UNLIMITED", "n/a", "", "-", "1-", "1:2:3:4", "1:-2", "x", "1-x"})
    EXPECT_EQ(parse_time_limit_s(none), std::nullopt) << none;
}

TEST(Times, AsSbatchTakesThem) {
  EXPECT_EQ(time_limit_text(0), "0-00:01:00");
  EXPECT_EQ(time_limit_text(60), "0-00:01:00");
  EXPECT_EQ(time_limit_text(61), "0-00:02:00");
  EXPECT_EQ(time_limit_text(93784), "1-02:04:00");
  for (const double seconds : {60.0, 3600.0, 86400.0, 900000.0})
    EXPECT_EQ(parse_time_limit_s(time_limit_text(seconds)), static_cast<std::int64_t>(seconds));
}

TEST(NodeLists, OneByOne) {
  const auto list = [](const char* text) { return expand_nodes(text).value_or(std::vector<std::string>{"no list"}); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(list(""), Names());
  EXPECT_EQ(list("n1"), Names({"n1"}));
  EXPECT_EQ(list("n[1-3,7],m2"), Names({"n1", "n2", "n3", "n7", "m2"}));
  EXPECT_EQ(list("n[08-11]"), Names({"n08", "n09", "n10", "n11"}));
  EXPECT_EQ(list("n[8-11]"), Names({"n8", "n9", "n10", "n11"}));
  EXPECT_EQ(list("n[001,010]-ib"), Names({"n001-ib", "n010-ib"}));
  EXPECT_EQ(list("a,b[1,2],c"), Names({"a", "b1", "b2", "c"}));
  EXPECT_EQ(list("r[1-2]n[01-02]"), Names({"r1n01", "r1n02", "r2n01", "r2n02"}));
  EXPECT_EQ(list("r[1]n[2]-[3,4]x"), Names({"r1n2-3x", "r1n2-4x"}));
}

TEST(Partitions, HaveStates) {
  using States = std::map<std::string, std::string>;
  EXPECT_EQ(parse_partition_states("debug*|up\ngpu|down\nrubbish\n"), (States{{"debug", "up"}, {"gpu", "down"}}));
}

TEST(NodeLists, WhatIsNoneIsRefused) {
  for (const char* text : {"n[1-2]m[3-4", "n]1[", "[0-99999][0-99999]", "n[1-2", "n[", "n[]", "n[1-]", "n[-1]",
                           "n[2-1]", "n[a-b]", "n[1,,2]", "n1]", "a,,b", ",a", "n[0-1000000]"})
    EXPECT_FALSE(expand_nodes(text)) << text;
}

TEST(Configuration, ValuesByTheirWholeName) {
  const std::string text =
      "Configuration data as of now\nMaxArraySize            = 1001\nNoMaxArraySize = 3\nEmpty =\n";
  EXPECT_EQ(parse_config_value(text, "MaxArraySize"), "1001");
  EXPECT_EQ(parse_config_value(text, "Empty"), "");
  EXPECT_EQ(parse_config_value(text, "MaxArray"), std::nullopt);
}

}  // namespace
}  // namespace assay::host::batch
