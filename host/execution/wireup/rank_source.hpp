// Where this process's rank comes from when something else than assay has started it together with others.
//
// In this order, because a launcher may run inside another's environment (mpirun in a Slurm batch script: every process
// sees Slurm's rank 0):
//
//   ASSAY_RANK, ASSAY_RANKS                      by hand; they override all others
//   RANK, WORLD_SIZE                             torchrun and what imitates it
//   a row of the table in rank_source.cpp        assay run --hosts, Open MPI, MVAPICH, Flux, PALS, MPICH and Intel MPI
//   by PMI SLURM_PROCID, SLURM_STEP_NUM_TASKS           srun; only with SLURM_STEP_ID: a batch script has a
//   SLURM_PROCID too
//
// Two that disagree are a mistake, and so is a variable of another launcher that says that there are several processes.
//
// ASSAY_RENDEZVOUS=HOST:PORT goes with each of them, and with it ASSAY_RENDEZVOUS_TOKEN or ASSAY_RENDEZVOUS_TOKEN_FILE.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace assay::host::wireup {

// The launcher of ranks that `assay run --hosts` has started over ssh (hosts/host_launch.hpp).
inline constexpr const char* hosts_launcher = "assay run --hosts";

// Where rank 0's service is to be, said by the user.
struct ExplicitRendezvous {
  std::string host;
  std::uint16_t port = 0;
  // ASSAY_RENDEZVOUS_TOKEN, or what the file ASSAY_RENDEZVOUS_TOKEN_FILE holds. Empty: a random one, which rank 0
  // leaves in the folder that all processes see (rendezvous.hpp).
  std::string token;
};

struct LaunchedRank {
  std::int32_t rank = 0;
  // 1: a launch of one process (srun -n 1 bash, mpirun -n 1). Nobody else has a rank; assay starts its ranks itself.
  std::int32_t size = 1;
  std::int32_t local_rank = -1;  // -1: not said
  std::int32_t local_size = 0;   // 0: not said
  std::string launcher;          // "ASSAY_RANK" (set by hand), "torchrun", "Open MPI", "Slurm", ...
  std::string job_id;            // the same in all processes of this launch, and in no other launch
  std::optional<ExplicitRendezvous> rendezvous;

  bool is_by_hand() const { return launcher == "ASSAY_RANK"; }
  // Who says how many there are, before a number or a relative clause's object: "Slurm has started"; where somebody has
  // set the variables by hand "ASSAY_RANKS names", since nobody knows whether he has started them.
  std::string who_tells() const;
};

// The value of a variable, or null: std::getenv, or a test's.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// Which process of this machine has started the ranks, as a name that no other launch has ("4711-88120"); "" where none
// is known.
using LauncherProcess = std::function<std::string()>;
// The nearest hydra_pmi_proxy above this process; its parent where there is none.
std::string nearest_launcher_process();

// Nothing when no launcher's variables are there. Throws WireupError that names the variable and its value when they
// are half set, make no sense or contradict each other, and for a token that is weak or whose file others can read; no
// text shows a token. A variable without text counts as not set.
std::optional<LaunchedRank> launched_rank(const EnvironmentLookup& environment,
                                          const LauncherProcess& launcher_process = nearest_launcher_process);

}  // namespace assay::host::wireup
