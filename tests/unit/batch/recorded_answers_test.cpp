// What Slurm 22.05 and 24.11 have said, as recorded in answers/ (answers/record made it).
#include "batch/slurm_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/files.hpp"

namespace assay::host::batch {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

class Recorded : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string answer(const std::string& name) {
    return read_file(std::filesystem::path(ASSAY_ANSWERS) / GetParam() / (name + ".txt"));
  }
  // The recording has times between the columns that assay asks for: these are left out, and the rest put into its
  // order. %F|%K|%A|%T|%N|%S|%e|%V|%r|%k becomes %A|%F|%K|%T|%N|%r|%k.
  static std::vector<QueuedJob> queue(const std::string& name) {
    std::string text;
    for (const std::string& line : split(answer(name), '\n')) {
      const auto f = split(line, '|');
      if (f.size() < 10) continue;
      text += f[2] + '|' + f[0] + '|' + f[1] + '|' + f[3] + '|' + f[4];
      for (std::size_t i = 8; i < f.size(); ++i) text += '|' + f[i];
      text += '\n';
    }
    return parse_queue(text);
  }
  // %F|%K|%A|%T alone.
  static std::vector<QueuedJob> short_queue(const std::string& name) {
    std::string text;
    for (const std::string& line : split(answer(name), '\n'))
      if (const auto f = split(line, '|'); f.size() == 4) text += f[2] + '|' + f[0] + '|' + f[1] + '|' + f[3] + "|||\n";
    return parse_queue(text);
  }
  // %N|%T|%c|%m|%l|%G|%f|%E becomes %N|%T|%c|%G|%f|%l|%P.
  static std::vector<NodeState> nodes(const std::string& name) {
    std::string text;
    for (const std::string& line : split(answer(name), '\n'))
      if (const auto f = split(line, '|'); f.size() >= 8)
        text += f[0] + '|' + f[1] + '|' + f[2] + '|' + f[5] + '|' + f[6] + '|' + f[4] + "|debug*\n";
    return parse_nodes(text);
  }
  static const QueuedJob& job(const std::vector<QueuedJob>& jobs, const std::string& id) {
    const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const QueuedJob& each) { return each.job == id; });
    if (found == jobs.end()) throw std::out_of_range("no job " + id);
    return *found;
  }
};

TEST_P(Recorded, EveryJobOfAFullQueueIsRead) {
  const auto jobs = queue("squeue_many");
  EXPECT_EQ(jobs.size(), 26U);
  EXPECT_TRUE(queue("squeue_no_jobs").empty());
  const QueuedJob& waiting = job(jobs, "5");
  EXPECT_EQ(waiting.array, "5");
  EXPECT_TRUE(waiting.is_pending());
  EXPECT_FALSE(waiting.has_task(1));
  EXPECT_TRUE(waiting.has_task(2));
  EXPECT_TRUE(waiting.has_task(11));
  EXPECT_FALSE(waiting.has_task(12));
  EXPECT_EQ(waiting.reason, "JobArrayTaskLimit");
  EXPECT_EQ(waiting.comment, "assay:0f3c");
  const QueuedJob& running = job(jobs, "11");
  EXPECT_EQ(running.array, "5");
  EXPECT_TRUE(running.has_task(1));
  EXPECT_FALSE(running.has_task(0));
  EXPECT_EQ(running.nodes, "n4");
  EXPECT_EQ(job(jobs, "4").nodes, "n[2-3]");
  EXPECT_TRUE(job(jobs, "4").tasks.empty());
}

TEST_P(Recorded, StatesSayWhetherAJobComesToAnything) {
  const auto jobs = queue("squeue_many");
  for (const char* over : {"15", "17", "2", "3", "7"}) EXPECT_FALSE(job(jobs, over).is_active()) << over;
  for (const char* active : {"26", "25", "5", "6", "1", "16", "18"})
    EXPECT_TRUE(job(jobs, active).is_active()) << active;
  const auto ended = queue("squeue_ended");
  EXPECT_EQ(job(ended, "1").state, "TIMEOUT");
  EXPECT_FALSE(job(ended, "1").is_active());
}

TEST_P(Recorded, ReasonsAndCommentsStayWhole) {
  const auto jobs = queue("squeue_many");
  EXPECT_EQ(job(jobs, "21").reason,
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions");
  EXPECT_EQ(job(jobs, "24").comment, "");
  EXPECT_EQ(job(jobs, "23").comment, "somebody else's | comment");
  EXPECT_EQ(job(queue("squeue_ended"), "8").reason, "ReqNodeNotAvail, UnavailableNodes:n6");
}

TEST_P(Recorded, ListsWithStepsAndLimits) {
  const auto jobs = queue("squeue_many");
  const QueuedJob& odd = job(jobs, "19");
  EXPECT_TRUE(odd.has_task(1));
  EXPECT_FALSE(odd.has_task(2));
  EXPECT_TRUE(odd.has_task(99));
  const QueuedJob& listed = job(jobs, "20");
  for (const int task : {1, 3, 4, 9, 43, 70}) EXPECT_TRUE(listed.has_task(task)) << task;
  for (const int task : {0, 2, 5, 69, 71}) EXPECT_FALSE(listed.has_task(task)) << task;
}

TEST_P(Recorded, ACutListIsNeverTakenForAWholeOne) {
  for (const char* name : {"squeue_truncated", "squeue_short_bitstr"}) {
    const auto jobs = short_queue(name);
    const QueuedJob& cut = job(jobs, "20");
    EXPECT_TRUE(cut.is_cut) << name;
    for (const int task : {1, 3, 4, 47, 70}) EXPECT_TRUE(cut.has_task(task)) << name << " " << task;
    EXPECT_FALSE(cut.has_task(2)) << name;
    EXPECT_FALSE(job(jobs, "5").is_cut);
    EXPECT_FALSE(job(jobs, "19").is_cut);
  }
}

TEST_P(Recorded, NumbersOfSubmittedJobs) {
  EXPECT_EQ(parse_submitted(answer("sbatch_ok")), (SubmittedJob{"27", ""}));
  EXPECT_EQ(parse_submitted(answer("sbatch_ok_plain")), std::nullopt) << "is not what --parsable says";
  for (const char* refused : {"sbatch_wrong_partition", "sbatch_wrong_constraint", "sbatch_no_script"})
    EXPECT_EQ(parse_submitted(answer(refused)), std::nullopt) << refused;
  EXPECT_TRUE(parse_submitted(answer("sbatch_wrong_too_long"))) << "is taken, and waits";
}

TEST_P(Recorded, Nodes) {
  const auto all = nodes("sinfo_nodes");
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[0].name, "n1");
  EXPECT_EQ(all[0].state, "draining");
  EXPECT_FALSE(all[0].is_usable());
  EXPECT_EQ(all[1].state, "allocated");
  EXPECT_TRUE(all[1].is_usable());
  for (const NodeState& node : all)
    EXPECT_EQ(node.is_usable(), !node.state.starts_with("d") && !node.state.ends_with("*")) << node.state;
  for (const NodeState& node : all) {
    EXPECT_EQ(node.gpus(), 2);
    EXPECT_EQ(node.cpus, 2);
    EXPECT_EQ(parse_time_limit_s(node.time_limit), 7200);
  }
  EXPECT_TRUE(nodes("sinfo_nodes_mixed")[0].is_usable());
  EXPECT_TRUE(nodes("sinfo_unknown_partition").empty());
}

TEST_P(Recorded, HowAJobEndedAndWhere) {
  const std::string code = GetParam() == std::string("22.05") ? "0:0" : "0:1";
  EXPECT_EQ(parse_end_of_job(answer("job_node_failed")), "NODE_FAIL, exit code " + code + ", on n6");
  EXPECT_EQ(parse_end_of_job(answer("job_shown")), "PENDING, exit code 0:0") << "no node has it";
  EXPECT_EQ(parse_end_of_job("slurm_load_jobs error: Invalid job id specified"), "");
}

TEST_P(Recorded, Configuration) {
  EXPECT_EQ(parse_config_value(answer("config"), "MaxArraySize"), "101");
  EXPECT_EQ(parse_config_value(answer("config"), "ArraySize"), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Slurm, Recorded, ::testing::Values("22.05", "24.11"), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace assay::host::batch
