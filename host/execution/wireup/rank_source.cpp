#include "wireup/rank_source.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "wireup/endpoint.hpp"
#include "wireup/key_value.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

// srun's steps count from 0. Slurm numbers what is no parallel program (batch script, interactive shell, extern) from
// the top.
constexpr std::int64_t special_steps_from = 4294967280;

// A launcher by the variables that it sets for each rank. A name that is null is of a variable that it has not.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  bool shares_size = false;  // another launcher sets `size`, too: only the rank shows this one
  // What is the same in all processes of one launch, and in no other: the first that is set.
  std::array<const char*, 3> job = {};
  bool may_lack_job = false;  // then the process that has started the ranks names the launch, on one machine
};
constexpr Launcher own{"ASSAY_RANK", "ASSAY_RANK", "ASSAY_RANKS", "ASSAY_LOCAL_RANK", "ASSAY_LOCAL_RANKS"};
constexpr Launcher torchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
// Those that start processes of MPI and their like, the inner ones first.
constexpr Launcher launchers[] = {
    {.name = hosts_launcher,
     .rank = "ASSAY_HOSTS_RANK",
     .size = "ASSAY_HOSTS_RANKS",
     .local_rank = "ASSAY_HOSTS_LOCAL_RANK",
     .local_size = "ASSAY_HOSTS_LOCAL_RANKS",
     .job = {"ASSAY_HOSTS_LAUNCH"}},
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}},
    {.name = "MVAPICH",
     .rank = "MV2_COMM_WORLD_RANK",
     .size = "MV2_COMM_WORLD_SIZE",
     .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
     .local_size = "MV2_COMM_WORLD_LOCAL_SIZE",
     .job = {"MPIRUN_ID"},
     .may_lack_job = true},
    {.name = "Flux",
     .rank = "FLUX_TASK_RANK",
     .size = "FLUX_JOB_SIZE",
     .local_rank = "FLUX_TASK_LOCAL_ID",
     .local_size = nullptr,
     .job = {"FLUX_JOB_ID"}},
    {.name = "PALS",
     .rank = "PALS_RANKID",
     .size = "PMI_SIZE",
     .local_rank = "PALS_LOCAL_RANKID",
     .local_size = "PMI_LOCAL_SIZE",
     .shares_size = true,
     .job = {"PALS_APID"},
     .may_lack_job = true},
    // Intel MPI has an identifier of the launch, srun --mpi=pmi2 the step's; MPICH has none.
    {.name = "PMI (MPICH, Intel MPI)",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS",
     .job = {"I_MPI_HYDRA_UUID", "PMI_JOBID"},
     .may_lack_job = true},
};

// Variables of launches that none of the above is. A number from `at_least` on says that there are several processes.
struct Hint {
  const char* name;
  std::int64_t at_least;
};
constexpr Hint hints[] = {{"PMIX_RANK", 1},          {"SLURM_PROCID", 1},  {"MVP_COMM_WORLD_SIZE", 2},
                          {"JSM_NAMESPACE_SIZE", 2}, {"ALPS_APP_PE", 1},   {"MPI_LOCALNRANKS", 2},
                          {"HOROVOD_SIZE", 2},       {"LOCAL_RANK", 1},    {"LOCAL_WORLD_SIZE", 2},
                          {"PALS_RANKID", 1},        {"MP_CHILD", 1},      {"PMI_UNIVERSE_SIZE", 2},
                          {"MPIRUN_RANK", 1},        {"MPIRUN_NPROCS", 2}, {"LAMRANK", 1}};

class Variables {
 public:
  explicit Variables(const EnvironmentLookup& environment) : environment_(environment) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = environment_(name);
    if (!value || !*value) return std::nullopt;
    return value;
  }

  std::optional<std::int64_t> number(const char* name, std::int64_t min, std::int64_t max) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), parsed);
    if (error != std::errc{} || end != value->data() + value->size() || parsed < min || parsed > max)
      throw WireupError(fmt::format("{} is '{}'; expected a number{}", name, *value, range_text(min, max)));
    return parsed;
  }

  // Rank and size, if one of them is there; both must be.
  std::optional<LaunchedRank> ranks(const Launcher& names) const {
    const auto rank = number(names.rank, 0, ranks_max);
    if (!rank && names.shares_size) return std::nullopt;
    const auto size = number(names.size, 1, ranks_max);
    if (!rank && !size) return std::nullopt;
    if (!rank || !size) {
      const char* set = rank ? names.rank : names.size;
      throw WireupError(fmt::format("{} is '{}', but {} is not set; set both, or neither for a launch without ranks",
                                    set, *text(set), rank ? names.size : names.rank));
    }
    if (*rank >= *size)
      throw WireupError(fmt::format("{} is '{}', but {} is '{}'; expected a rank below the number of ranks", names.rank,
                                    *rank, names.size, *size));
    LaunchedRank launched;
    launched.launcher = names.name;
    launched.rank = static_cast<std::int32_t>(*rank);
    launched.size = static_cast<std::int32_t>(*size);
    read_local(names, launched);
    return launched;
  }

  void read_local(const Launcher& names, LaunchedRank& launched) const {
    launched.local_rank = static_cast<std::int32_t>(number(names.local_rank, 0, launched.size - 1).value_or(-1));
    if (names.local_size)
      launched.local_size = static_cast<std::int32_t>(number(names.local_size, 1, launched.size).value_or(0));
    if (launched.local_size > 0 && launched.local_rank >= launched.local_size)
      throw WireupError(fmt::format("{} is '{}', but {} is '{}'; expected a rank below the number of ranks",
                                    names.local_rank, launched.local_rank, names.local_size, launched.local_size));
  }

  static constexpr std::int64_t ranks_max = std::numeric_limits<std::int32_t>::max();

 private:
  static std::string range_text(std::int64_t min, std::int64_t max) {
    if (max == ranks_max || max == std::numeric_limits<std::int64_t>::max()) return fmt::format(" from {}", min);
    return min == max ? fmt::format(": {}", min) : fmt::format(" from {} to {}", min, max);
  }

  const EnvironmentLookup& environment_;
};

std::optional<LaunchedRank> from_own(const Variables& variables) {
  auto launched = variables.ranks(own);
  if (!launched) return std::nullopt;
  const auto rendezvous = variables.text("ASSAY_RENDEZVOUS");
  if (!rendezvous && launched->size > 1)
    throw WireupError(
        fmt::format("ASSAY_RANKS is '{}', but ASSAY_RENDEZVOUS is not set; set it to HOST:PORT of the "
                    "machine with rank 0, the same in all processes",
                    launched->size));
  launched->job_id = fmt::format("assay-{}", rendezvous.value_or("alone"));
  return launched;
}

// The id of a torchrun's launch. The run id alone is "none" unless the user gives one, and the address alone comes
// again with the next launch.
std::string torchrun_job(const Variables& variables, const LaunchedRank& launched) {
  const auto run = variables.text("TORCHELASTIC_RUN_ID");
  const auto address = variables.text("MASTER_ADDR");
  const auto port = variables.text("MASTER_PORT");
  if (!run && !(address && port) && launched.size > 1)
    throw WireupError(
        fmt::format("RANK is '{}' and WORLD_SIZE is '{}', but neither TORCHELASTIC_RUN_ID nor MASTER_ADDR "
                    "with MASTER_PORT is set; they distinguish this launch from others",
                    launched.rank, launched.size));
  return fmt::format("torchrun-{}-{}-{}:{}", run.value_or("none"),
                     variables.text("TORCHELASTIC_RESTART_COUNT").value_or("0"), address.value_or("none"),
                     port.value_or("0"));
}

// The id of a launch by a row of the table. MPICH sets nothing that is the same in all processes and in no other
// launch: an address that the user gives is, and on one machine the process that has started them.
std::string job_by_row(const Launcher& row, const Variables& variables, const LaunchedRank& launched,
                       const LauncherProcess& launcher_process) {
  std::string kind, job;
  for (const char c : launched.launcher.substr(0, launched.launcher.find(" (")))
    if (c != ' ') kind += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* name : row.job)
    if (name && job.empty()) job = variables.text(name).value_or("");
  if (job.empty() && launched.size == 1) job = "alone";
  if (job.empty() && row.may_lack_job) job = variables.text("ASSAY_RENDEZVOUS").value_or("");
  const bool is_one_machine = launched.local_size == launched.size;  // 0: unknown
  if (job.empty() && row.may_lack_job && is_one_machine) job = launcher_process();
  if (!job.empty()) return kind + "-" + job;
  if (row.may_lack_job)
    throw WireupError(
        fmt::format("{} is '{}' and {} is '{}', but no variable identifies this launch. Set ASSAY_RENDEZVOUS to "
                    "HOST:PORT of rank 0's machine, the same in all processes",
                    row.rank, launched.rank, row.size, launched.size));
  throw WireupError(fmt::format(
      "{} is set, but {} is not; it distinguishes this launch from others. Start the ranks with {}'s launcher itself",
      row.rank, row.job[0], row.name));
}

// SLURM_STEP_TASKS_PER_NODE is "2(x3),1": two tasks on each of three nodes, one on the fourth.
std::int32_t slurm_local_size(const Variables& variables, std::int32_t size) {
  const auto text = variables.text("SLURM_STEP_TASKS_PER_NODE");
  const auto node = variables.number("SLURM_NODEID", 0, Variables::ranks_max);
  if (!text || !node) return 0;
  std::int64_t nodes_before = 0;
  std::string_view rest = *text;
  const auto take_number = [&](std::int64_t& value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc{}) return false;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return true;
  };
  while (!rest.empty()) {
    std::int64_t tasks = 0, nodes = 1;
    bool good = take_number(tasks);
    if (good && rest.starts_with("(x")) {
      rest.remove_prefix(2);
      good = take_number(nodes) && rest.starts_with(")");
      if (good) rest.remove_prefix(1);
    }
    if (good && !rest.empty()) {
      good = rest.front() == ',';
      rest.remove_prefix(1);
    }
    if (!good || tasks < 1 || tasks > size || nodes < 1) break;
    nodes_before += nodes;
    if (*node < nodes_before) return static_cast<std::int32_t>(tasks);
  }
  throw WireupError(
      fmt::format("SLURM_STEP_TASKS_PER_NODE is '{}' and SLURM_NODEID is '{}'; expected a list like "
                  "'2(x3),1' that reaches this node",
                  *text, *node));
}

std::optional<LaunchedRank> from_slurm(const Variables& variables) {
  const auto step = variables.number("SLURM_STEP_ID", 0, std::numeric_limits<std::int64_t>::max());
  if (!step || *step >= special_steps_from) return std::nullopt;
  // SLURM_NTASKS may be the job's instead of the step's (srun --preserve-env).
  const bool has_step_tasks = variables.text("SLURM_STEP_NUM_TASKS").has_value();
  auto launched = variables.ranks(Launcher{.name = "Slurm",
                                           .rank = "SLURM_PROCID",
                                           .size = has_step_tasks ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                                           .local_rank = "SLURM_LOCALID",
                                           .local_size = nullptr});
  if (launched) launched->local_size = slurm_local_size(variables, launched->size);
  return launched;
}
std::string slurm_job(const Variables& variables) {
  const std::string step = variables.text("SLURM_STEP_ID").value_or("");
  const auto job = variables.text("SLURM_JOB_ID");
  if (!job) throw WireupError(fmt::format("SLURM_STEP_ID is '{}', but SLURM_JOB_ID is not set; unset both", step));
  return fmt::format("slurm-{}.{}.{}", *job, step, variables.text("SLURM_RESTART_COUNT").value_or("0"));
}

// Empty when the user gives none.
std::string given_token(const Variables& variables) {
  constexpr const char *in_text = "ASSAY_RENDEZVOUS_TOKEN", *in_file = "ASSAY_RENDEZVOUS_TOKEN_FILE";
  const auto token = variables.text(in_text);
  const auto file = variables.text(in_file);
  if (token && file) throw WireupError(fmt::format("{} and {} are both set; set one of them", in_text, in_file));
  if (file) return token_of_file(*file, in_file);
  if (token) check_token(*token, in_text);
  return token.value_or("");
}

struct FoundLaunch {
  LaunchedRank launched;
  std::function<std::string(const LaunchedRank&)> job;  // throws WireupError where nothing names it
};

// All launchers whose variables are there, the inner ones first.
std::vector<FoundLaunch> all_launched(const Variables& variables, const LauncherProcess& launcher_process) {
  std::vector<FoundLaunch> all;
  if (auto launched = variables.ranks(torchrun))
    all.push_back({std::move(*launched), [&](const LaunchedRank& rank) { return torchrun_job(variables, rank); }});
  for (const Launcher& row : launchers)
    if (auto launched = variables.ranks(row))
      all.push_back({std::move(*launched),
                     [&](const LaunchedRank& rank) { return job_by_row(row, variables, rank, launcher_process); }});
  if (auto launched = from_slurm(variables))
    all.push_back({std::move(*launched), [&](const LaunchedRank&) { return slurm_job(variables); }});
  return all;
}

// Whether `outer` has started one process on each machine, or for each group, which have started `inner`: srun the
// torchrun of each node, or the daemons of mpirun (all nodes but the first one).
bool is_nested(const LaunchedRank& inner, const LaunchedRank& outer) {
  if (inner.size <= outer.size || inner.local_size < 1 || inner.local_size >= inner.size) return false;
  return outer.launcher == "Slurm" || inner.size == outer.size * inner.local_size;
}

// The innermost launch. One of a single process has started nothing beside it. Others must say the same, or have
// started what has started the ranks: two that disagree would make several runs of what is meant as one.
std::optional<LaunchedRank> agreed(std::vector<FoundLaunch> all) {
  if (all.empty()) return std::nullopt;
  LaunchedRank& inner = all.front().launched;
  for (const FoundLaunch& found : std::span(all).subspan(1)) {
    const LaunchedRank& outer = found.launched;
    if (outer.size == 1) continue;
    const bool is_same = inner.rank == outer.rank && inner.size == outer.size;
    if (!is_same && !is_nested(inner, outer))
      throw WireupError(fmt::format(
          "two launchers disagree: {} says rank {} of {}, {} says rank {} of {}; unset the variables of the one that "
          "did not start this process, or set ASSAY_RANK and ASSAY_RANKS",
          inner.launcher, inner.rank, inner.size, outer.launcher, outer.rank, outer.size));
    if (!is_same) continue;
    if (inner.local_rank < 0) inner.local_rank = outer.local_rank;
    if (inner.local_size == 0) inner.local_size = outer.local_size;
  }
  inner.job_id = all.front().job(inner);
  return std::move(inner);
}

// Several processes of a launch that is not understood would each run the whole experiment, beside each other.
void check_hints(const Variables& variables, bool is_understood) {
  for (const Hint& hint : hints) {
    const auto text = variables.text(hint.name);
    if (!text) continue;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    // PMIx says nowhere how many ranks there are: its rank 0 may be one of many.
    const bool may_be_first = !is_understood && std::string_view(hint.name) == "PMIX_RANK";
    if (error != std::errc{} || end != text->data() + text->size() || number < (may_be_first ? 0 : hint.at_least))
      continue;
    throw WireupError(
        fmt::format("{} is '{}': a launcher has started this process beside others, but assay does not know how many; "
                    "set ASSAY_RANK, ASSAY_RANKS and ASSAY_RENDEZVOUS in each, or unset {} to run this process alone",
                    hint.name, *text, hint.name));
  }
}

}  // namespace

std::string nearest_launcher_process() {
  std::string nearest;
  for (std::int64_t pid = getppid(); pid > 1;) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string stat;
    if (!std::getline(file, stat)) break;
    // "123 (hydra_pmi_proxy) S 122 ...": the name may hold anything, brackets too.
    const std::size_t open = stat.find('('), close = stat.rfind(')');
    if (open == stat.npos || close == stat.npos || close + 4 >= stat.size()) break;
    std::istringstream rest(stat.substr(close + 2));
    std::string field;
    constexpr int start_time = 20;  // the 22nd field of proc(5)
    for (int i = 0; i < start_time && rest >> field; ++i) {
    }
    const std::string name = fmt::format("{}-{}", pid, field);
    if (stat.substr(open + 1, close - open - 1) == "hydra_pmi_proxy") return name;
    if (nearest.empty()) nearest = name;
    pid = std::strtoll(stat.c_str() + close + 4, nullptr, 10);
  }
  return nearest;
}

std::string LaunchedRank::who_tells() const { return is_by_hand() ? "ASSAY_RANKS names" : launcher + " has started"; }

std::optional<LaunchedRank> launched_rank(const EnvironmentLookup& environment,
                                          const LauncherProcess& launcher_process) {
  const Variables variables(environment);
  auto launched = from_own(variables);
  if (!launched) launched = agreed(all_launched(variables, launcher_process));
  if (!launched || (launched->size == 1 && !launched->is_by_hand())) check_hints(variables, launched.has_value());
  if (!launched) return std::nullopt;
  if (const auto text = variables.text("ASSAY_RENDEZVOUS")) {
    const auto [host, port] = parse_host_and_port(*text, "ASSAY_RENDEZVOUS");
    launched->rendezvous = {host, port, launched->size > 1 ? given_token(variables) : ""};
  }
  return launched;
}

}  // namespace assay::host::wireup
