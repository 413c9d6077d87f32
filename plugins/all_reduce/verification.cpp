// Does a step do as many collectives as its time is divided by? And is every element of every rank right? Checked are
// what the last timed step has left, where that is known, and what the same step leaves once more. Then come one run in
// place and one out of place, as far as the collective has both. Each uses the timed buffers and the timed collective,
// on other data whose result is known to the bit. A collective that sends or leaves old data is wrong each time.
#include <algorithm>
#include <cstdio>

#include <assay/comm/exchange.hpp>

#include "workload.hpp"

namespace all_reduce {

using assay::DeviceMemory;
using assay::Error;
using assay::comm::Collective;
using assay::comm::Comparison;
using assay::comm::ExactData;
using assay::comm::PeriodicData;
using assay::comm::Pieces;
using assay::comm::Reduction;
using assay::compute::Tensor;

namespace {

// No part of a message moves by it: a prime.
constexpr std::int64_t shift_of_data = 10'007;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

}  // namespace

ExactData Workload::exact_data() const {
  const bool reduces = assay::comm::reduces(settings_.collective);
  // Where nothing is added up, the largest values that stay exact do.
  return {settings_.dtype, reduces ? settings_.reduction : Reduction::max, settings_.ranks};
}

void Workload::write_sent(const Tensor& send, const PeriodicData& own, std::int64_t shift) const {
  const Pieces pieces(*backend_);
  const std::int64_t part = settings_.message.part;
  if (!assay::comm::sends_parts(settings_.collective)) return pieces.write(send, own, shift);
  for (std::int32_t rank = 0; rank < settings_.ranks; ++rank)
    pieces.write(send.slice(0, rank * part, part), own, shift + rank * (part + 1));
}

Comparison Workload::compare_sent(const Tensor& send, const PeriodicData& own, std::int64_t shift) const {
  const Pieces pieces(*backend_);
  const std::int64_t part = settings_.message.part;
  if (!assay::comm::sends_parts(settings_.collective)) return pieces.compare(send, own, shift, 0);
  Comparison all;
  for (std::int32_t rank = 0; rank < settings_.ranks; ++rank) {
    Comparison one = pieces.compare(send.slice(0, rank * part, part), own, shift + rank * (part + 1), 0);
    if (one.first) one.first->index += rank * part;
    all.add(one);
  }
  return all;
}

Comparison Workload::check_result(const Buffers& b, const ExactData& exact, std::int64_t shift) const {
  const Pieces pieces(*backend_);
  const auto data = [&](const std::vector<std::int32_t>& period) { return PeriodicData(settings_.dtype, period); };
  const std::int64_t part = settings_.message.part;
  switch (settings_.collective) {
    case Collective::all_reduce: return pieces.compare(b.receive, data(exact.reduced()), shift, exact.tolerance());
    case Collective::reduce_scatter:
      return pieces.compare(b.receive, data(exact.reduced()), shift + settings_.rank * (part + 1), exact.tolerance());
    case Collective::broadcast: return pieces.compare(b.receive, data(exact.sent_by(settings_.root)), shift, 0);
    case Collective::send_receive:
      return pieces.compare(b.receive, data(exact.sent_by(settings_.previous_rank)), shift, 0);
    case Collective::all_gather:
    case Collective::all_to_all: break;
  }
  // Of what each rank has sent, all_gather has the whole, and all_to_all this rank's part.
  if (settings_.collective == Collective::all_to_all) shift += settings_.rank * (part + 1);
  Comparison all;
  for (std::int32_t rank = 0; rank < settings_.ranks; ++rank) {
    Comparison one = pieces.compare(b.receive.slice(0, rank * part, part), data(exact.sent_by(rank)), shift, 0);
    if (one.first) one.first->index += rank * part;
    all.add(one);
  }
  return all;
}

Comparison Workload::run_and_check(bool in_place, const ExactData& exact, std::int64_t shift) {
  DeviceMemory other;
  if (!in_place && settings_.in_place)
    other = DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, other_bytes(), "second buffer of the verification");
  const Buffers b = buffers(in_place, settings_.in_place ? other.data() : other_memory_.data());
  const Pieces pieces(*backend_);
  const PeriodicData own(settings_.dtype, exact.sent_by(settings_.rank));
  // Once without a graph: what NCCL does at the first collective of two buffers is no part of a capture.
  if (graph_) communicator_->wait(enqueue(b));
  pieces.spoil(b.receive);
  if (settings_.collective != Collective::broadcast || settings_.rank == settings_.root) write_sent(b.send, own, shift);
  // As a step does it; of its collectives in a row one, since in place a second one would add up the first one's sums.
  std::unique_ptr<assay::compute::Graph> graph = graph_ ? capture(b, 1) : nullptr;
  if (graph)
    graph->launch();
  else
    communicator_->wait(enqueue(b));
  communicator_->synchronize();
  Comparison result = check_result(b, exact, shift);
  if (!in_place) {  // the sent buffer is unchanged
    const Comparison sent = compare_sent(b.send, own, shift);
    if (sent.wrong > 0)
      throw Error(ASSAY_WRONG_RESULT, settings_.collective_name + " out of place has changed " +
                                          std::to_string(sent.wrong) + " elements of what rank " +
                                          std::to_string(settings_.rank) + " sent, the first at index " +
                                          std::to_string(sent.first->index));
  }
  return result;
}

// The timed step once more, the series or its graph. The communicator counts its collectives: a time is divided by
// their number.
void Workload::check_count(const Launch& launch) {
  const std::uint64_t before = time_.collectives(*communicator_);
  run_step(launch);
  communicator_->synchronize();
  const std::uint64_t done = time_.collectives(*communicator_) - before;
  if (done == static_cast<std::uint64_t>(settings_.repeats)) return;
  throw Error(ASSAY_WRONG_RESULT, "a step must be " + std::to_string(settings_.repeats) + " x " +
                                      settings_.collective_name + ", and the communicator of rank " +
                                      std::to_string(settings_.rank) + " counts " + std::to_string(done));
}

std::string Workload::verify(const Launch& launch) {
  const ExactData exact = exact_data();
  const bool one_buffer = settings_.collective == Collective::broadcast;
  Comparison mine;
  std::string first_wrong;
  const auto add = [&](const Comparison& found, const char* when) {
    mine.add(found);
    if (found.first && first_wrong.empty())
      first_wrong = "rank " + std::to_string(settings_.rank) + ", " + when + ", element " +
                    std::to_string(found.first->index) + ": got " + number(found.first->got) + ", expected " +
                    number(found.first->expected);
  };
  assay::begin_part(host_, "timed_step");
  communicator_->synchronize();
  add(check_timed(exact), "after the last timed step");
  if (!settings_.in_place) Pieces(*backend_).spoil(timed_.receive);
  check_count(launch);
  add(check_timed(exact), "after the timed step once more");
  assay::begin_part(host_, "other_data");
  const bool two_buffers = !assay::comm::may_be_in_place(settings_.collective);
  if (!two_buffers) add(run_and_check(true, exact, 1 * shift_of_data), "in place");
  if (!one_buffer) add(run_and_check(false, exact, 2 * shift_of_data), "out of place");

  struct Counts {
    std::int64_t checked, wrong;
  };
  const std::vector<Counts> of_ranks =
      assay::comm::exchange(host_, "all_reduce.verified", Counts{mine.checked, mine.wrong});
  Counts total{0, 0};
  std::string wrong_ranks;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    total.checked += of_ranks[rank].checked, total.wrong += of_ranks[rank].wrong;
    if (of_ranks[rank].wrong > 0) wrong_ranks += (wrong_ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  launch.report(wrong_elements_metric, total.wrong);

  std::string what = settings_.collective_name;
  if (assay::comm::reduces(settings_.collective)) what += " (" + settings_.reduction_name + ")";
  const char* const buffers = one_buffer    ? "in one buffer"
                              : two_buffers ? "in two buffers"
                                            : "in place and out of place";
  const std::string in_turn =
      repeats_in_place() && settings_.ranks > 1 ? " (of reductions in place, but for their roundings)" : "";
  const std::string how = graph_ ? "replayed as a graph, " : "";
  const std::string checked =
      std::to_string(total.checked) + " elements on " + std::to_string(settings_.ranks) + " rank(s), " + how + buffers +
      ", and what the last timed step has left" + in_turn + ", also when it runs once more" +
      (settings_.repeats > 1 ? ", " + std::to_string(settings_.repeats) + " collectives in a step" : "");
  if (total.wrong > 0)
    throw Error(ASSAY_WRONG_RESULT, what + ": " + std::to_string(total.wrong) + " of " + checked +
                                        " are wrong, on rank(s) " + wrong_ranks +
                                        (first_wrong.empty() ? "" : "; " + first_wrong));
  return what + ": " + checked + ", " +
         (exact.tolerance() > 0 ? "all within " + number(exact.tolerance()) + " of the exact average"
                                : "all exact to the bit") +
         "; " + communicator_->description();
}

}  // namespace all_reduce
