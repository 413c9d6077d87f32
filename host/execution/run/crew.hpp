// The processes of assay that run the ranks of a case: this one alone, or all those that a launcher (srun, mpirun,
// torchrun) has started. The one with rank 0 leads: it owns the results and the terminal; the others follow its orders.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/signals.hpp"
#include "run/rank_place.hpp"
#include "run/rank_report.hpp"
#include "wireup/rendezvous.hpp"

namespace assay::host::run {

class Crew {
 public:
  // Alone: starts as many ranks on this machine as a case asks for.
  Crew();
  // Leads: publishes its address and waits until the other processes of the launch are here, `patience` at most, or
  // until a signal. Throws WireupError that names the ranks that did not come, and who was refused meanwhile.
  Crew(const wireup::LaunchedRank& launched, const std::filesystem::path& rendezvous_folder,
       wireup::KeyValue::Timeout patience, const launch::InterruptHandler& interrupts);
  // Dismisses the others, as failed where dismiss() was not called.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool is_launched() const { return launched_.has_value(); }
  std::int32_t size() const { return is_launched() ? launched_->size : 1; }

  // Says where the first `count` ranks of a case run, and how they share processors. Alone, all run here.
  std::vector<RankPlace> places(std::int32_t count) const;

  // The service that joins ranks; started when first asked for.
  const wireup::Endpoint& endpoint();
  wireup::KeyValueStore& store() { return store_; }

  // Launched: asks the follower of the specification's rank to run it.
  void give_order(const worker::CaseSpec& spec);
  // Launched: what a follower has said of its rank. `case_prefix` names the case.
  std::optional<RankReport> find_report(std::int32_t rank, const std::string& case_prefix);
  // Gives a report once the follower's process is gone; nothing while it is there.
  std::optional<RankReport> find_loss(std::int32_t rank);
  // Launched: this rank has not answered in time. It counts as lost from here on, also when it comes back: then it
  // finds that it is dismissed, and no order.
  void leave_behind(std::int32_t rank);
  // Launched: whether some follower's process is gone.
  bool has_losses();
  // Launched, and asked to end: a sentence on a follower that has died before it was asked to end, too; empty when
  // there is none. Waits until each of them has said so or is gone, up to the time after which a machine that does not
  // answer counts as gone.
  std::string death();
  void dismiss(int exit_code);

  // A line on the connections that the service has refused so far; empty when there were none.
  std::string strangers_text() const;

 private:
  void gather(wireup::KeyValue::Timeout patience, const launch::InterruptHandler& interrupts);

  std::optional<wireup::LaunchedRank> launched_;
  wireup::KeyValueStore store_;
  std::shared_ptr<wireup::Watch> watch_;                 // of the followers, when launched
  std::unique_ptr<wireup::RendezvousPoint> rendezvous_;  // when launched
  std::unique_ptr<wireup::KeyValueServer> server_;       // when alone
  std::vector<RankPlace> members_;                       // when launched, by rank
  std::vector<std::int64_t> orders_given_;               // by rank
  std::map<std::int32_t, std::string> losses_;           // of followers, by rank
  std::set<std::int32_t> left_;                          // of these, with a goodbye
  bool dismissed_ = false;
};

}  // namespace assay::host::run
