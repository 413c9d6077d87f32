// Holds the account that a workload keeps of its steps against the steps of a case: reads it when the window is over,
// and repeats the first steps when nothing else is left to do but the verification.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "measure/loop.hpp"
#include "worker/host_services.hpp"
#include "worker/observer.hpp"
#include "worker/rank_services.hpp"
#include "worker/step_account.hpp"

namespace assay::host::worker {

// The parts of a case that the check uses.
struct AccountedCase {
  const assay_workload& workload;
  assay_workload_self* object;
  HostServices& services;
  RankServices& ranks;
  CaseObserver& observer;
  std::function<void(const char* function, assay_status)> check;  // throws for what is not ASSAY_OK
  std::function<void(const std::string& mistake)> wrong;          // throws: the result is wrong
  std::function<void(std::uint64_t iteration, bool measured)> run;
  std::function<void()> wait;  // for the device
  // Calls its argument while another object, set up, takes the place of this one. Throws where there can be none.
  std::function<void(const std::function<void()>&)> with_new_object;
  bool waits_for_each_step;
  bool computes_on_processors;  // and not on a separate device
  bool takes_steps_after_finish;
};

class AccountCheck {
 public:
  explicit AccountCheck(AccountedCase of) : case_(std::move(of)), table_(account_of(case_.workload, case_.object)) {}

  // After repeat(): what leaves open whether the measured steps did their work; "" where nothing does.
  std::string why_in_part() const;
  // Right before the first measured step.
  void open();
  // When the device has ended the last measured step: the count is that of the steps, or the case is wrong.
  void read(const measure::LoopResult& measured);
  // After everything that belongs to the figures: the text of what was found, with "; " behind it. Of a workload
  // without an account, "" where steps of the two stages take about the same time.
  std::string repeat(const measure::LoopResult& measured);
  // After the verification, as the last thing that is done with the workload: where it keeps no account, and its
  // measured steps were much faster than those before them, another object shows whether they did their work.
  void try_anew(const measure::LoopResult& measured) const;

  bool keeps_account() const { return table_ != nullptr; }
  bool any_rank(bool mine) const;

 private:
  assay_launch launch() const { return case_.services.launch(ASSAY_STAGE_VERIFY, 0, nullptr); }
  StepAccount account() const;
  double slowest(double mine) const;
  void try_stages(const measure::LoopResult& measured) const;
  double seconds_of_step(std::uint64_t iteration, bool measured) const;

  AccountedCase case_;
  const assay_account* table_;
  std::optional<StepAccount> timed_;
  bool is_in_part_ = false;
};

}  // namespace assay::host::worker
