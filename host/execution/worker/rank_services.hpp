// The other ranks, as one rank sees them: what a plugin is offered as assay.comm/1, and what the measurement itself has
// to agree on with them.
#pragma once
#include <assay/comm.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/stopping.hpp"
#include "wireup/key_value_client.hpp"
#include "worker/case_spec.hpp"
#include "worker/observer.hpp"

namespace assay::host::worker {

// From here on SIGTERM does not end this process but makes RankServices::aborted() true: the host gives a rank a moment
// to leave its collectives before it kills it.
void take_termination_as_abort();
// That somebody else than the host has sent SIGTERM to this process, and who: a sentence for a reason. Empty where
// nobody has.
std::string termination_from_outside();

// Not movable: plugins hold its address.
class RankServices {
 public:
  // Reaches the service and waits until every rank is there. Throws WireupError.
  RankServices(const CaseSpec& spec, CaseObserver& observer);
  // With a service of the caller's in place of the ranks' own.
  RankServices(const CaseSpec& spec, CaseObserver& observer, std::unique_ptr<wireup::KeyValue> service);
  RankServices(const RankServices&) = delete;
  RankServices& operator=(const RankServices&) = delete;
  ~RankServices();

  const assay_comm* abi() const { return &comm_; }
  bool is_alone() const { return spec_.count == 1; }
  // Where a failing call of the plugin leaves its text.
  void set_message_sink(std::function<void(assay_status, std::string)> sink) { message_sink_ = std::move(sink); }

  // This rank has failed: what it still has in flight with the others is to be dropped, not waited for.
  void give_up() { given_up_ = true; }
  // This rank has done its part. Without it, the others learn that it is lost.
  void leave();

  // Until every rank is here, however long it takes: what keeps a rank from coming ends the case in other ways.
  void meet(std::string_view where);
  // The slowest rank's time of each step; all ranks pass the same number.
  std::vector<double> slowest(std::span<const double> mine);
  measure::Verdict agree(measure::Verdict mine);  // rank 0's
  // What all ranks of this machine have, added up.
  double sum_of_this_machine(double mine);
  // Throws WireupError when the case is being ended.
  void check_aborted() const;

 private:
  void make_table(const CaseSpec& spec);
  static RankServices& from(const assay_comm* comm) { return *static_cast<RankServices*>(comm->impl); }
  template <class F>
  assay_status answer(F&& f) noexcept;
  std::string next_name(std::string_view what);

  std::vector<std::string> exchange(const std::string& name, std::string_view mine);

  const RankSpec spec_;
  CaseObserver& observer_;
  std::unique_ptr<wireup::KeyValue> service_;
  wireup::KeyValueClient* client_ = nullptr;  // the service, where it is another process's
  std::string address_, library_folder_;
  assay_comm comm_{};
  std::function<void(assay_status, std::string)> message_sink_;
  std::atomic<bool> given_up_ = false;
  std::uint64_t agreements_ = 0;  // the same on every rank: names what is exchanged next
};

}  // namespace assay::host::worker
