// The account of the measured steps. The communicator counts the collectives that it has ended, with those of graphs. A
// collective of two buffers, or one that receives what others have sent, finds some places of its result spoiled. One
// that reduces in place finds its own data there again; the number of collectives since then makes the result known
// (repeated.hpp).
#include <algorithm>

#include "repeated.hpp"
#include "workload.hpp"

namespace all_reduce {

using assay::comm::Collective;
using assay::comm::Comparison;
using assay::comm::ExactData;
using assay::comm::PeriodicData;
using assay::comm::Pieces;
using assay::compute::Tensor;

namespace {

// The collective of set-up, which the steps' own follow.
constexpr std::uint64_t of_setup = 1;
constexpr std::int64_t most_renewed = 256;  // few, so that caches stay as they are

}  // namespace

bool Workload::repeats_in_place() const { return settings_.in_place && assay::comm::reduces(settings_.collective); }

std::int64_t Workload::reduced_from() const {
  return settings_.collective == Collective::reduce_scatter ? settings_.rank * (settings_.message.part + 1) : 0;
}

// What a collective brings from other ranks: nothing of it was there before.
std::vector<Tensor> Workload::foreign_results() const {
  const Tensor& all = timed_.receive;
  if (!settings_.in_place) return {all};
  if (settings_.collective == Collective::broadcast && settings_.rank != settings_.root) return {all};
  if (settings_.collective != Collective::all_gather) return {};
  const std::int64_t part = settings_.message.part, begin = settings_.rank * part, end = begin + part;
  return {all.slice(0, 0, begin), all.slice(0, end, all.elements() - end)};
}

void Workload::prepare_account() {
  std::vector<assay::workload::SpoiledResults::Result> results;
  for (const Tensor& t : foreign_results()) results.push_back({"what is received", t.elements()});
  spoiled_.take_memory(host_, *backend_, std::move(results));
}

void Workload::open_account(const Launch&) {
  spoiled_.spoil(*backend_, foreign_results());
  if (!repeats_in_place()) return;
  renewed_ = std::min(timed_.receive.elements(), most_renewed);
  collectives_before_ = time_.collectives(*communicator_);
  const PeriodicData own(settings_.dtype, exact_data().sent_by(settings_.rank));
  Pieces(*backend_).write(timed_.receive.slice(0, 0, renewed_), own, reduced_from());
}

assay::Account Workload::account(const Launch&) {
  const std::uint64_t steps = time_.steps(*communicator_, static_cast<std::uint64_t>(settings_.repeats));
  (void)spoiled_.read(*backend_, foreign_results());
  return {.steps = steps};
}

Comparison Workload::check_timed(const ExactData& exact) {
  if (!repeats_in_place()) return check_result(timed_, exact, 0);
  const std::uint64_t done = time_.collectives(*communicator_);
  const Repetition repetition{settings_.collective, settings_.reduction, settings_.dtype, settings_.ranks,
                              exact.tolerance()};
  const auto compare = [&](std::int64_t first, std::int64_t end, std::uint64_t times) {
    Comparison one = compare_repeated(*backend_, timed_.receive.slice(0, first, end - first), repetition, exact,
                                      settings_.rank, reduced_from() + first, times);
    if (one.first) one.first->index += first;
    return one;
  };
  Comparison all = compare(0, renewed_, done - collectives_before_);
  all.add(compare(renewed_, timed_.receive.elements(), of_setup + done));
  return all;
}

}  // namespace all_reduce
