#include "wireup/rank_source.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <tuple>

#include "helpers.hpp"

namespace assay::host::wireup {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LaunchedRank> launched(const Variables& variables) {
  return launched_rank(
      [&](const char* name) -> const char* {
        const auto entry = variables.find(name);
        return entry == variables.end() ? nullptr : entry->second.c_str();
      },
      [] { return std::string("4711-88"); });
}

std::string mistake(const Variables& variables) {
  return error_of([&] { launched(variables); });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables.insert_or_assign(name, value);
  return variables;
}

// As the launchers set them, recorded with Open MPI 4.1.4 and Slurm 22.05.8.
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "1659305985"},    {"PMIX_RANK", "1"}};
const Variables slurm_batch = {{"SLURM_JOB_ID", "12"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_LOCALID", "0"},
                               {"SLURM_NODEID", "0"},
                               {"SLURM_NTASKS", "4"}};
const Variables slurm_step = {
    {"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "3"}, {"SLURM_PROCID", "4"}, {"SLURM_STEP_NUM_TASKS", "5"},
    {"SLURM_NTASKS", "5"},  {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};
const Variables torchrun = {{"RANK", "5"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "4"},
                            {"MASTER_ADDR", "node1"},
                            {"MASTER_PORT", "29500"},
                            {"TORCHELASTIC_RUN_ID", "none"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables own = {{"ASSAY_RANK", "1"}, {"ASSAY_RANKS", "3"}, {"ASSAY_RENDEZVOUS", "node1:4711"}};

TEST(RankSource, NothingWithoutALauncher) {
  EXPECT_FALSE(launched({}));
  EXPECT_FALSE(launched({{"HOME", "/root"}, {"ASSAY_RENDEZVOUS", "node1:4711"}}));
  EXPECT_FALSE(launched({{"RANK", ""}, {"WORLD_SIZE", ""}}));
}

const std::string token = "2f1c8e5ab03d49768b1e7ca4d5f60392";

TEST(RankSource, Own) {
  const auto rank = launched(with(own, {{"ASSAY_LOCAL_RANK", "0"}, {"ASSAY_RENDEZVOUS_TOKEN", token}}));
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->who_tells(), "ASSAY_RANKS names");
  EXPECT_EQ(rank->rank, 1);
  EXPECT_EQ(rank->size, 3);
  EXPECT_EQ(rank->local_rank, 0);
  EXPECT_EQ(rank->local_size, 0);
  ASSERT_TRUE(rank->rendezvous);
  EXPECT_EQ(rank->rendezvous->host, "node1");
  EXPECT_EQ(rank->rendezvous->port, 4711);
  EXPECT_EQ(rank->rendezvous->token, token);
  EXPECT_EQ(launched(own)->local_rank, -1);
}

TEST(RankSource, NoTokenIsMadeOfWhatOthersCanGuess) { EXPECT_EQ(launched(own)->rendezvous->token, ""); }

TEST(RankSource, TokenComesFromAFileOfThisUserAlone) {
  TemporaryFolder folder;
  const auto file = folder.path() / "token";
  std::ofstream(file) << token << "\n";
  const Variables by_file = with(own, {{"ASSAY_RENDEZVOUS_TOKEN_FILE", file.string()}});
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  EXPECT_CONTAINS(mistake(by_file), "ASSAY_RENDEZVOUS_TOKEN_FILE: " + file.string() + " has the permissions 0644");
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(launched(by_file)->rendezvous->token, token);
  EXPECT_CONTAINS(mistake(with(by_file, {{"ASSAY_RENDEZVOUS_TOKEN", token}})), "are both set");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RENDEZVOUS_TOKEN_FILE", "/no/such"}})), "there is no such file: /no/such");
}

TEST(RankSource, AWeakTokenIsRefusedWithTheRemedy) {
  const std::string text = mistake(with(own, {{"ASSAY_RENDEZVOUS_TOKEN", "open sesame"}}));
  EXPECT_CONTAINS(text, "ASSAY_RENDEZVOUS_TOKEN has 11 characters");
  EXPECT_CONTAINS(text, "openssl rand -hex 16");
  EXPECT_EQ(text.find("sesame"), std::string::npos);
}

TEST(RankSource, Torchrun) {
  const auto rank = launched(torchrun);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "torchrun");
  EXPECT_EQ(rank->rank, 5);
  EXPECT_EQ(rank->size, 8);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->local_size, 4);
  EXPECT_EQ(rank->job_id, "torchrun-none-2-node1:29500");
  EXPECT_FALSE(rank->rendezvous);
  EXPECT_EQ(launched(with(torchrun, {{"ASSAY_RENDEZVOUS", "node2:1"}}))->rendezvous->host, "node2");
}

TEST(RankSource, OpenMpi) {
  const auto rank = launched(open_mpi);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "Open MPI");
  EXPECT_EQ(rank->rank, 1);
  EXPECT_EQ(rank->size, 2);
  EXPECT_EQ(rank->local_rank, 1);
  EXPECT_EQ(rank->local_size, 2);
  EXPECT_EQ(rank->job_id, "openmpi-1659305985");
}

TEST(RankSource, SlurmStep) {
  const auto rank = launched(slurm_step);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->who_tells(), "Slurm has started");
  EXPECT_EQ(rank->rank, 4);
  EXPECT_EQ(rank->size, 5);
  EXPECT_EQ(rank->local_rank, 0);
  EXPECT_EQ(rank->local_size, 1);
  EXPECT_EQ(rank->job_id, "slurm-12.3.0");
  const auto again = launched(with(slurm_step, {{"SLURM_RESTART_COUNT", "1"}, {"SLURM_NODEID", "1"}}));
  EXPECT_EQ(again->job_id, "slurm-12.3.1");
  EXPECT_EQ(again->local_size, 2);
}

TEST(RankSource, SlurmBatchScriptHasNoRank) {
  EXPECT_FALSE(launched(slurm_batch));
  EXPECT_FALSE(launched(with(slurm_batch, {{"SLURM_STEP_ID", "4294967291"}})));
}

// salloc's interactive shell, whose SLURM_NTASKS is the job's.
TEST(RankSource, SlurmInteractiveShellHasNoRank) {
  EXPECT_FALSE(launched(with(slurm_batch, {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}})));
}

TEST(RankSource, SlurmStepOfOneTaskIsAlone) {
  const auto rank = launched(
      with(slurm_batch, {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}}));
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->rank, 0);
  EXPECT_EQ(rank->size, 1);
}

// mpirun in a batch script: every rank sees Slurm's rank 0, on the other nodes with a step id as well.
TEST(RankSource, OpenMpiGoesBeforeSlurm) {
  EXPECT_EQ(launched(with(slurm_batch, open_mpi))->rank, 1);
  const auto remote = launched(with(with(slurm_batch, {{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "1"}}), open_mpi));
  EXPECT_EQ(remote->launcher, "Open MPI");
  EXPECT_EQ(remote->rank, 1);
}

TEST(RankSource, OwnGoesBeforeTorchrunGoesBeforeOpenMpi) {
  EXPECT_EQ(launched(with(open_mpi, torchrun))->launcher, "torchrun");
  EXPECT_EQ(launched(with(with(open_mpi, torchrun), own))->launcher, "ASSAY_RANK");
}

// As MPICH 4.0 and Intel MPI 2021.19 set them; the others by their documents.
const Variables mpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

TEST(RankSource, LaunchersOfTheTable) {
  const Variables intel = with(mpich, {{"I_MPI_HYDRA_UUID", "41680000-ab93"}});
  const Variables pals = {{"PALS_RANKID", "1"}, {"PALS_APID", "c0ffee"}, {"PALS_LOCAL_RANKID", "1"}, {"PMI_RANK", "1"},
                          {"PMI_SIZE", "2"},    {"PMI_LOCAL_SIZE", "2"}, {"PMI_JOBID", "c0ffee"}};
  const Variables flux = {
      {"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}, {"FLUX_TASK_LOCAL_ID", "1"}, {"FLUX_JOB_ID", "f3Y"}};
  const Variables mvapich = {{"MV2_COMM_WORLD_RANK", "1"},
                             {"MV2_COMM_WORLD_SIZE", "2"},
                             {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                             {"MV2_COMM_WORLD_LOCAL_SIZE", "2"},
                             {"MPIRUN_ID", "812"}};
  const std::tuple<Variables, std::string, std::string> rows[] = {
      {mpich, "PMI (MPICH, Intel MPI)", "pmi-4711-88"},
      {intel, "PMI (MPICH, Intel MPI)", "pmi-41680000-ab93"},
      {pals, "PALS", "pals-c0ffee"},
      {flux, "Flux", "flux-f3Y"},
      {mvapich, "MVAPICH", "mvapich-812"},
      {open_mpi, "Open MPI", "openmpi-1659305985"}};
  for (const auto& [variables, launcher, job] : rows) {
    const auto rank = launched(variables);
    ASSERT_TRUE(rank) << launcher;
    EXPECT_EQ(rank->launcher, launcher);
    EXPECT_EQ(rank->rank, 1) << launcher;
    EXPECT_EQ(rank->size, 2) << launcher;
    EXPECT_EQ(rank->local_rank, 1) << launcher;
    EXPECT_EQ(rank->job_id, job);
  }
  EXPECT_CONTAINS(mistake({{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "2"}}), "FLUX_JOB_ID is not");
  EXPECT_CONTAINS(mistake({{"PMI_RANK", "1"}}), "PMI_RANK is '1', but PMI_SIZE is not set");
  EXPECT_CONTAINS(mistake({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), "ASSAY_RENDEZVOUS");
  EXPECT_CONTAINS(mistake(with(mpich, {{"MPI_LOCALNRANKS", "1"}, {"MPI_LOCALRANKID", "0"}})), "ASSAY_RENDEZVOUS");
  EXPECT_EQ(launched({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})->size, 1);
}

TEST(RankSource, LaunchersThatDisagreeAreAMistakeThatNamesBoth) {
  const std::string stale = mistake(with(open_mpi, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_CONTAINS(stale, "torchrun says rank 0 of 1, Open MPI says rank 1 of 2");
  EXPECT_CONTAINS(
      mistake(with(mpich, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"PMIX_NAMESPACE", "x"}})),
      "Open MPI says rank 0 of 3, PMI (MPICH, Intel MPI) says rank 1 of 2");
  // What was started twice by hand: srun -n 2 mpirun -n 2.
  const Variables two_tasks = {{"SLURM_JOB_ID", "1"},
                               {"SLURM_STEP_ID", "0"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_LOCALID", "0"}};
  EXPECT_CONTAINS(mistake(with(two_tasks, open_mpi)), "Slurm says rank 0 of 2");
  // Their own number goes before.
  EXPECT_EQ(launched(with(with(two_tasks, open_mpi), own))->rank, 1);
}

TEST(RankSource, ALaunchWithinALaunchIsNone) {
  // srun starts a torchrun on each of two nodes.
  const Variables agents = {{"SLURM_JOB_ID", "1"},
                            {"SLURM_STEP_ID", "0"},
                            {"SLURM_PROCID", "1"},
                            {"SLURM_STEP_NUM_TASKS", "2"},
                            {"SLURM_LOCALID", "0"}};
  EXPECT_EQ(launched(with(agents, torchrun))->rank, 5);
  // srun --mpi=pmi2 says its ranks twice.
  const auto twice = launched(with(slurm_step, {{"PMI_RANK", "4"}, {"PMI_SIZE", "5"}, {"PMI_JOBID", "12.3"}}));
  EXPECT_EQ(twice->rank, 4);
  EXPECT_EQ(twice->local_size, 1);
}

TEST(RankSource, SeveralProcessesThatAreNotUnderstoodAreAMistake) {
  EXPECT_CONTAINS(mistake({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "prte-1"}}), "PMIX_RANK is '0'");
  EXPECT_CONTAINS(mistake({{"JSM_NAMESPACE_SIZE", "4"}}), "JSM_NAMESPACE_SIZE is '4'");
  EXPECT_CONTAINS(mistake({{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "2"}}), "SLURM_PROCID is '2'");
  EXPECT_FALSE(launched({{"JSM_NAMESPACE_SIZE", "1"}}));
  EXPECT_FALSE(launched({{"HOROVOD_SIZE", "many"}}));
}

TEST(RankSource, HalfSetIsAMistake) {
  EXPECT_CONTAINS(mistake({{"ASSAY_RANK", "1"}}), "ASSAY_RANK is '1', but ASSAY_RANKS is not set");
  EXPECT_CONTAINS(mistake({{"WORLD_SIZE", "4"}}), "WORLD_SIZE is '4', but RANK is not set");
  EXPECT_CONTAINS(mistake({{"OMPI_COMM_WORLD_RANK", "0"}}), "OMPI_COMM_WORLD_SIZE is not set");
  EXPECT_CONTAINS(mistake({{"SLURM_JOB_ID", "1"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}}), "SLURM_NTASKS");
  EXPECT_CONTAINS(mistake({{"ASSAY_RANK", "0"}, {"ASSAY_RANKS", "2"}}), "ASSAY_RENDEZVOUS is not set");
  EXPECT_CONTAINS(mistake({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}), "MASTER_PORT");
  EXPECT_CONTAINS(mistake({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), "PMIX_NAMESPACE");
}

TEST(RankSource, NonsenseIsAMistake) {
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RANK", "3"}})), "ASSAY_RANK is '3', but ASSAY_RANKS is '3'");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RANK", "one"}})), "ASSAY_RANK is 'one'; expected a number from 0");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RANK", "-1"}})), "ASSAY_RANK is '-1'");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RANKS", "0"}})), "ASSAY_RANKS is '0'; expected a number from 1");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RANK", "1x"}})), "'1x'");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RANK", "99999999999999999999"}})), "'99999999999999999999'");
  EXPECT_CONTAINS(mistake(with(own, {{"ASSAY_RENDEZVOUS", "node1"}})), "ASSAY_RENDEZVOUS is 'node1'");
  EXPECT_CONTAINS(mistake(with(torchrun, {{"LOCAL_RANK", "4"}})), "LOCAL_RANK is '4', but LOCAL_WORLD_SIZE is '4'");
  EXPECT_CONTAINS(mistake(with(torchrun, {{"LOCAL_WORLD_SIZE", "9"}})), "LOCAL_WORLD_SIZE is '9'; expected");
  EXPECT_CONTAINS(mistake(with(slurm_step, {{"SLURM_NODEID", "3"}})), "SLURM_STEP_TASKS_PER_NODE is '2(x2),1'");
  for (const char* list : {"2(x2,1", "2,,1", "x", "2(x0),1", "0(x3)", "9"})
    EXPECT_CONTAINS(mistake(with(slurm_step, {{"SLURM_STEP_TASKS_PER_NODE", list}})), list);
  EXPECT_CONTAINS(mistake(with(slurm_step, {{"SLURM_STEP_ID", "a"}})), "SLURM_STEP_ID is 'a'");
}

}  // namespace
}  // namespace assay::host::wireup
