#include "wireup/rank_source.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include "wireup/endpoint.hpp"
#include "wireup/key_value.hpp"
#include "wireup/token.hpp"

namespace assay::host::wireup {
namespace {

// srun's steps count from 0. Slurm numbers what is no parallel program (batch script, interactive shell, extern) from
// the top.
constexpr std::int64_t special_steps_from = 4294967280;

// The names under which a launcher says its ranks.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr Names own_names{"ASSAY_RANK", "ASSAY_RANK", "ASSAY_RANKS", "ASSAY_LOCAL_RANK", "ASSAY_LOCAL_RANKS"};
constexpr Names torchrun_names{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names open_mpi_names{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE"};

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
  std::optional<LaunchedRank> ranks(const Names& names) const {
    const auto rank = number(names.rank, 0, ranks_max);
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
    launched.launcher = names.launcher;
    launched.rank = static_cast<std::int32_t>(*rank);
    launched.size = static_cast<std::int32_t>(*size);
    read_local(names, launched);
    return launched;
  }

  void read_local(const Names& names, LaunchedRank& launched) const {
    launched.local_rank = static_cast<std::int32_t>(number(names.local_rank, 0, launched.size - 1).value_or(-1));
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
  auto launched = variables.ranks(own_names);
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

std::optional<LaunchedRank> from_torchrun(const Variables& variables) {
  auto launched = variables.ranks(torchrun_names);
  if (!launched) return std::nullopt;
  // The run id alone is "none" unless the user gives one, and the address alone comes again with the next launch.
  const auto run = variables.text("TORCHELASTIC_RUN_ID");
  const auto address = variables.text("MASTER_ADDR");
  const auto port = variables.text("MASTER_PORT");
  if (!run && !(address && port) && launched->size > 1)
    throw WireupError(
        fmt::format("RANK is '{}' and WORLD_SIZE is '{}', but neither TORCHELASTIC_RUN_ID nor MASTER_ADDR "
                    "with MASTER_PORT is set; they tell this launch from others",
                    launched->rank, launched->size));
  launched->job_id = fmt::format("torchrun-{}-{}-{}:{}", run.value_or("none"),
                                 variables.text("TORCHELASTIC_RESTART_COUNT").value_or("0"), address.value_or("none"),
                                 port.value_or("0"));
  return launched;
}

std::optional<LaunchedRank> from_open_mpi(const Variables& variables) {
  auto launched = variables.ranks(open_mpi_names);
  if (!launched) return std::nullopt;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"})
    if (const auto job = variables.text(name)) {
      launched->job_id = "openmpi-" + *job;
      return launched;
    }
  if (launched->size > 1)
    throw WireupError(
        "OMPI_COMM_WORLD_RANK is set, but PMIX_NAMESPACE is not; it tells this launch from others. Start "
        "the ranks with mpirun itself");
  launched->job_id = "openmpi-alone";
  return launched;
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
  auto launched = variables.ranks(
      {"Slurm", "SLURM_PROCID", has_step_tasks ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", "SLURM_LOCALID", ""});
  if (!launched) return std::nullopt;
  const auto job = variables.text("SLURM_JOB_ID");
  if (!job) throw WireupError(fmt::format("SLURM_STEP_ID is '{}', but SLURM_JOB_ID is not set; unset both", *step));
  launched->local_size = slurm_local_size(variables, launched->size);
  launched->job_id = fmt::format("slurm-{}.{}.{}", *job, *step, variables.text("SLURM_RESTART_COUNT").value_or("0"));
  return launched;
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

}  // namespace

std::string LaunchedRank::who_tells() const {
  return is_by_hand() ? "ASSAY_RANKS tells of" : launcher + " has started";
}

std::optional<LaunchedRank> launched_rank(const EnvironmentLookup& environment) {
  const Variables variables(environment);
  auto launched = from_own(variables);
  if (!launched) launched = from_torchrun(variables);
  if (!launched) launched = from_open_mpi(variables);
  if (!launched) launched = from_slurm(variables);
  if (!launched) return std::nullopt;
  if (const auto text = variables.text("ASSAY_RENDEZVOUS")) {
    const auto [host, port] = parse_host_and_port(*text, "ASSAY_RENDEZVOUS");
    launched->rendezvous = {host, port, launched->size > 1 ? given_token(variables) : ""};
  }
  return launched;
}

}  // namespace assay::host::wireup
