// libassay_comm_gloo.so of the mutants: the real communicator over Gloo, of whose collectives one may be broken. The
// host finds it by ASSAY_COMM_PATH. Every collective takes place on all ranks, so that none waits for ever; what is
// broken is what it leaves in memory, which is the host's. The file is long because one class has to answer every call
// of the interface.
#include <dlfcn.h>
#include <assay/comm/communicator.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "host_tensors.hpp"
#include "switchboard.hpp"

namespace {

using assay::comm::Communicator;
using assay::comm::Reduction;
using assay::comm::Ticket;
using assay::compute::DType;
using assay::compute::Tensor;
using namespace assay::mutants;
using Counts = std::vector<std::int64_t>;

class MutantCommunicator final : public Communicator {
 public:
  explicit MutantCommunicator(std::unique_ptr<Communicator> real) : real_(std::move(real)) {}

  const char* backend() const override { return real_->backend(); }
  std::string description() const override { return real_->description(); }
  std::int32_t rank() const override { return real_->rank(); }
  std::int32_t size() const override { return real_->size(); }
  void register_memory(void* address, std::size_t bytes) override { real_->register_memory(address, bytes); }
  void begin_series() override {
    before_series_ = started_;
    real_->begin_series();
  }
  Ticket end_series() override {
    (void)real_->end_series();
    before_series_.reset();
    return started_;
  }
  void wait(Ticket ticket) override;
  void synchronize() override {
    carry_out_all();
    real_->synchronize();
  }
  void barrier() override {
    carry_out_all();
    real_->barrier();
  }
  assay::comm::Totals take_totals() override {
    carry_out_all();
    return real_->take_totals();
  }

  Ticket all_reduce(const Tensor& send, const Tensor& receive, Reduction reduction) override {
    return start([=, this] { run_all_reduce(send, receive, reduction); });
  }
  Ticket reduce_scatter(const Tensor& send, const Tensor& receive, Reduction reduction) override {
    return start([=, this] { run_reduce_scatter(send, receive, reduction); });
  }
  Ticket all_gather(const Tensor& send, const Tensor& receive) override {
    return start([=, this] { run_all_gather(send, receive); });
  }
  Ticket reduce(const Tensor& x, std::int32_t root, Reduction reduction) override {
    return start([=, this] { run_reduce(x, root, reduction); });
  }
  Ticket broadcast(const Tensor& x, std::int32_t root) override {
    return start([=, this] { run_broadcast(x, root); });
  }
  Ticket all_to_all(const Tensor& send, const Tensor& receive) override {
    return start([=, this] { run_all_to_all(send, receive); });
  }
  Ticket all_to_all_v(const Tensor& send, std::span<const std::int64_t> send_rows, const Tensor& receive,
                      std::span<const std::int64_t> receive_rows) override {
    return start([=, this, sent = Counts(send_rows.begin(), send_rows.end()),
                  received = Counts(receive_rows.begin(), receive_rows.end())] {
      run_all_to_all_v(send, sent, receive, received);
    });
  }
  Ticket send_receive(const Tensor& send, std::int32_t to, const Tensor& receive, std::int32_t from) override {
    return start([=, this] { run_send_receive(send, to, receive, from); });
  }
  Ticket send(const Tensor& x, std::int32_t to) override {
    return start([=, this] { run_send(x, to); });
  }
  Ticket receive(const Tensor& x, std::int32_t from) override {
    return start([=, this] { run_receive(x, from); });
  }

 private:
  bool is_last() const { return rank() == size() - 1; }
  std::int32_t next() const { return (rank() + 1) % size(); }
  // What a collective leaves is broken before anything else may look at it.
  void done(Ticket ticket) { real_->wait(ticket); }
  void run_all_reduce(const Tensor& send, const Tensor& receive, Reduction reduction);
  void run_reduce_scatter(const Tensor& send, const Tensor& receive, Reduction reduction);
  void run_all_gather(const Tensor& send, const Tensor& receive);
  void run_reduce(const Tensor& x, std::int32_t root, Reduction reduction);
  void run_broadcast(const Tensor& x, std::int32_t root);
  void run_all_to_all(const Tensor& send, const Tensor& receive);
  void run_all_to_all_v(const Tensor& send, const Counts& sent, const Tensor& receive, const Counts& received);
  void run_send_receive(const Tensor& send, std::int32_t to, const Tensor& receive, std::int32_t from);
  void run_send(const Tensor& x, std::int32_t to);
  void run_receive(const Tensor& x, std::int32_t from);
  // At once, or where a mutant of waiting lives when it is waited for.
  Ticket start(std::function<void()> collective);
  void carry_out_all() { carry_out(started_); }
  void carry_out(Ticket last);  // and those before it
  Bytes reduced_everywhere(const Tensor& send, Reduction reduction);
  // `unpaired`: the result before this one, where it waits for another one of its size.
  static void swap_pieces(Tensor& unpaired, const Tensor& receive, assay::mutants::MutantId mutant);
  // Whether `last` is there, and is other than what is there now.
  static bool was_other(Bytes& last, const Bytes& now) { return !last.empty() && last != now; }

  std::unique_ptr<Communicator> real_;
  std::deque<std::function<void()>> waiting_;  // collectives that are still to be carried out
  Ticket started_ = 0, carried_out_ = 0, due_ = 0;
  std::optional<Ticket> before_series_;  // the last one started then, within one
  std::uint64_t reductions_ = 0, scatterings_ = 0, gatherings_ = 0;
  std::map<std::pair<void*, std::int64_t>, Bytes> sent_, received_;  // last, by address and elements
  std::map<std::pair<void*, std::int64_t>, Bytes> shares_, parts_, scattered_, gathered_;  // of those two, likewise
  std::map<std::pair<void*, std::int64_t>, Bytes> sent_to_all_, received_of_all_;          // of all_to_all
  std::map<std::pair<void*, std::int64_t>, Bytes> sent_rows_, received_rows_;              // of all_to_all_v
  Bytes sent_before_, received_before_;                                                    // by send, and by receive
  Tensor unpaired_, unpaired_part_;  // what one of two collectives of a size has received
};

Ticket MutantCommunicator::start(std::function<void()> collective) {
  if (before_series_ && started_ > *before_series_ && breaks("series.cut_short")) return started_;
  waiting_.push_back(std::move(collective));
  ++started_;
  using assay::mutants::lives;
  if (!lives("wait.too_early") && !lives("wait.at_the_last_moment")) carry_out_all();
  return started_;
}

void MutantCommunicator::carry_out(Ticket last) {
  for (; carried_out_ < last; ++carried_out_, waiting_.pop_front()) waiting_.front()();
}

// Of every rank the waits are in one order, so that no collective lacks a rank.
void MutantCommunicator::wait(Ticket ticket) {
  if (size() > 1) (void)breaks("wait.at_the_last_moment");
  const Ticket due_before = std::exchange(due_, std::max(due_, ticket));
  carry_out(size() > 1 && breaks("wait.too_early") ? due_before : ticket);
}

void MutantCommunicator::swap_pieces(Tensor& unpaired, const Tensor& receive, assay::mutants::MutantId mutant) {
  if (!unpaired || unpaired.elements() != receive.elements() || unpaired.data == receive.data) {
    unpaired = receive;
    return;
  }
  if (breaks(mutant)) {
    const Bytes first = bytes_of(unpaired), second = bytes_of(receive);
    put(second, unpaired), put(first, receive);
  }
  unpaired = {};
}

// ---- all_reduce ----------------------------------------------------------------------------------------------------

void MutantCommunicator::run_all_reduce(const Tensor& send, const Tensor& receive, Reduction reduction) {
  const std::int64_t n = send.elements();
  if (n == 0 || size() == 1) return done(real_->all_reduce(send, receive, reduction));
  ++reductions_;
  const bool in_place = send.data == receive.data;
  const Bytes share = bytes_of(send);
  Reduction used = reduction;
  if (reduction == Reduction::average && breaks("all_reduce.sum_for_average")) used = Reduction::sum;
  if (reduction != Reduction::max && breaks("all_reduce.max_for_sum")) used = Reduction::max;

  // Broken in what is sent.
  bool changed = false;
  const auto zero = [&] { std::memset(send.data, 0, send.bytes()), changed = true; };
  if (breaks("all_reduce.last_rank_missing") && is_last()) zero();
  if (send.dtype == DType::f32 && breaks("all_reduce.bf16")) {
    edit_numbers(send, assay::mutants::to_bf16);
    changed = true;
  }
  Bytes& sent_before = sent_[{send.data, n}];
  if (!sent_before.empty() && sent_before != share && breaks("all_reduce.too_early"))
    put(sent_before, send), changed = true;
  sent_before = share;
  if (breaks("all_reduce.first_rank_alone")) {
    if (rank() != 0) zero();
    used = Reduction::sum;
  }
  done(real_->all_reduce(send, receive, used));
  if (changed && !in_place) put(share, send);

  // Broken in what is received.
  Tensor own = send;
  own.data = const_cast<unsigned char*>(share.data());
  Bytes& received_before = received_[{receive.data, n}];
  const Bytes result = bytes_of(receive);
  if (!received_before.empty() && received_before != result && breaks("all_reduce.stale_result"))
    put(received_before, receive);
  received_before = result;
  if (reductions_ % 2 == 0 && breaks("all_reduce.skipped_once")) put(share, receive);
  if (n >= 4 && breaks("all_reduce.range_left_out")) put(bytes_of(last_quarter(own)), last_quarter(receive));
  if (breaks("all_reduce.1_percent")) edit_numbers(receive, [](float x) { return 1.01F * x; });
  if (has_number(last_element(receive)) && breaks("all_reduce.last_element_off")) twice_as_large(last_element(receive));
  if (has_number(last_element(receive)) && breaks("all_reduce.one_rank_off") && is_last())
    twice_as_large(last_element(receive));
  if (breaks("all_reduce.not_a_number"))
    edit_numbers(last_element(receive), [](float) { return std::numeric_limits<float>::quiet_NaN(); });
  if (!in_place && breaks("all_reduce.send_overwritten")) put(bytes_of(receive), send);
  swap_pieces(unpaired_, receive, "all_reduce.pieces_swapped");
}

// ---- reduce_scatter ------------------------------------------------------------------------------------------------

// The reduction of all ranks' shares, beside them.
Bytes MutantCommunicator::reduced_everywhere(const Tensor& send, Reduction reduction) {
  Bytes all(send.bytes());
  Tensor target = send;
  target.data = all.data();
  done(real_->all_reduce(send, target, reduction));
  return all;
}

void MutantCommunicator::run_reduce_scatter(const Tensor& send, const Tensor& receive, Reduction reduction) {
  const std::int64_t n = receive.elements();
  if (n == 0 || size() == 1) return done(real_->reduce_scatter(send, receive, reduction));
  ++scatterings_;
  Reduction used = reduction;
  if (reduction == Reduction::average && breaks("reduce_scatter.sum_for_average")) used = Reduction::sum;
  if (reduction != Reduction::max && breaks("reduce_scatter.max_for_sum")) used = Reduction::max;
  const Bytes share = bytes_of(send);
  const bool in_place =
      static_cast<char*>(send.data) + static_cast<std::size_t>(rank()) * receive.bytes() == receive.data;
  Bytes all;
  if (breaks("reduce_scatter.parts_swapped")) all = reduced_everywhere(send, reduction);

  // Broken in what is sent.
  Bytes& share_before = shares_[{send.data, n}];
  if (was_other(share_before, share) && breaks("reduce_scatter.too_early")) put(share_before, send);
  share_before = share;
  if (breaks("reduce_scatter.last_rank_missing") && is_last()) std::memset(send.data, 0, send.bytes());
  if (send.dtype == DType::f32 && breaks("reduce_scatter.bf16")) edit_numbers(send, assay::mutants::to_bf16);
  if (breaks("reduce_scatter.first_rank_alone")) {
    if (rank() != 0) std::memset(send.data, 0, send.bytes());
    used = Reduction::sum;
  }
  done(real_->reduce_scatter(send, receive, used));
  if (!in_place) put(share, send);

  // Broken in what is received.
  Tensor own = send.flat();
  own.data = const_cast<unsigned char*>(share.data());
  own = own.slice(0, rank() * n, n);
  if (!all.empty())
    std::memcpy(receive.data, all.data() + static_cast<std::size_t>(next()) * receive.bytes(), receive.bytes());
  Bytes& part_before = scattered_[{receive.data, n}];
  const Bytes result = bytes_of(receive);
  if (was_other(part_before, result) && breaks("reduce_scatter.stale_result")) put(part_before, receive);
  part_before = result;
  if (scatterings_ % 2 == 0 && breaks("reduce_scatter.skipped_once")) put(bytes_of(own), receive);
  if (n >= 4 && breaks("reduce_scatter.range_left_out")) put(bytes_of(last_quarter(own)), last_quarter(receive));
  if (breaks("reduce_scatter.1_percent")) edit_numbers(receive, [](float x) { return 1.01F * x; });
  if (has_number(last_element(receive)) && breaks("reduce_scatter.last_element_off"))
    twice_as_large(last_element(receive));
  if (has_number(last_element(receive)) && breaks("reduce_scatter.one_rank_off") && is_last())
    twice_as_large(last_element(receive));
  if (breaks("reduce_scatter.not_a_number"))
    edit_numbers(last_element(receive), [](float) { return std::numeric_limits<float>::quiet_NaN(); });
  swap_pieces(unpaired_part_, receive, "reduce_scatter.pieces_swapped");
}

// ---- all_gather, broadcast -----------------------------------------------------------------------------------------

void MutantCommunicator::run_all_gather(const Tensor& send, const Tensor& receive) {
  const std::int64_t n = send.elements();
  if (n == 0 || size() == 1) return done(real_->all_gather(send, receive));
  ++gatherings_;
  const auto part_of = [&](std::int32_t of) { return receive.flat().slice(0, n * of, n); };
  const Tensor last_part = part_of(size() - 1);
  const bool in_place = send.data == part_of(rank()).data;
  const Bytes before = bytes_of(last_part), all_before = bytes_of(receive), share = bytes_of(send);

  // Broken in what is sent.
  Bytes& share_before = parts_[{send.data, n}];
  if (was_other(share_before, share) && breaks("all_gather.too_early")) put(share_before, send);
  share_before = share;
  if (send.dtype == DType::f32 && breaks("all_gather.bf16")) edit_numbers(send, assay::mutants::to_bf16);
  // In place the last rank's part has its new values already: what it was is known from the collective before.
  Bytes& last_before = received_[{receive.data, n}];
  done(real_->all_gather(send, receive));
  if (!in_place) put(share, send);

  // Broken in what is received.
  const Tensor first = part_of(0), second = part_of(1);
  const Bytes last_now = bytes_of(last_part);
  if (breaks("all_gather.parts_swapped")) {
    const Bytes a = bytes_of(first), b = bytes_of(second);
    put(b, first), put(a, second);
  }
  if (breaks("all_gather.last_part_stale") && !is_last()) put(before, last_part);
  if (was_other(last_before, last_now) && breaks("all_gather.last_part_old")) {
    put(last_before, last_part);
  } else {
    last_before = last_now;
  }
  const Bytes result = bytes_of(receive);
  Tensor was = receive;
  was.data = const_cast<unsigned char*>(all_before.data());
  Bytes& result_before = gathered_[{receive.data, n}];
  if (was_other(result_before, result) && breaks("all_gather.stale_result")) put(result_before, receive);
  result_before = result;
  if (gatherings_ % 2 == 0 && all_before != result && breaks("all_gather.skipped_once")) put(all_before, receive);
  if (!in_place && breaks("all_gather.own_part_unwritten"))
    put(bytes_of(was.flat().slice(0, n * rank(), n)), part_of(rank()));
  if (breaks("all_gather.first_part_everywhere"))
    for (std::int32_t r = 1; r < size(); ++r) put(bytes_of(first), part_of(r));
  if (n >= 4 && breaks("all_gather.range_left_out"))
    for (std::int32_t r = 0; r < size(); ++r)
      if (r != rank()) put(bytes_of(last_quarter(was.flat().slice(0, n * r, n))), last_quarter(part_of(r)));
  if (has_number(last_element(receive)) && breaks("all_gather.last_element_off")) twice_as_large(last_element(receive));
  if (has_number(last_element(receive)) && breaks("all_gather.one_rank_off") && is_last())
    twice_as_large(last_element(receive));
  if (breaks("all_gather.not_a_number"))
    edit_numbers(last_element(receive), [](float) { return std::numeric_limits<float>::quiet_NaN(); });
}

void MutantCommunicator::run_broadcast(const Tensor& x, std::int32_t root) {
  if (x.elements() == 0 || size() == 1) return done(real_->broadcast(x, root));
  const Bytes own = bytes_of(x);
  const std::int32_t used = breaks("broadcast.wrong_root") ? (root + 1) % size() : root;
  done(real_->broadcast(x, used));
  if (breaks("broadcast.does_nothing")) put(own, x);
  Tensor before = x;
  before.data = const_cast<unsigned char*>(own.data());
  if (x.elements() >= 4 && breaks("broadcast.range_left_out")) put(bytes_of(last_quarter(before)), last_quarter(x));
}

// ---- reduce --------------------------------------------------------------------------------------------------------

void MutantCommunicator::run_reduce(const Tensor& x, std::int32_t root, Reduction reduction) {
  if (x.elements() == 0 || size() == 1) return done(real_->reduce(x, root, reduction));
  const Bytes own = bytes_of(x);
  Reduction used = reduction;
  if (reduction == Reduction::average && breaks("reduce.sum_for_average")) used = Reduction::sum;
  if (breaks("reduce.last_rank_missing") && is_last()) std::memset(x.data, 0, x.bytes());
  done(real_->reduce(x, breaks("reduce.wrong_root") ? (root + 1) % size() : root, used));
  if (breaks("reduce.does_nothing")) put(own, x);
  Tensor before = x;
  before.data = const_cast<unsigned char*>(own.data());
  if (x.elements() >= 4 && breaks("reduce.range_left_out")) put(bytes_of(last_quarter(before)), last_quarter(x));
}

// ---- all_to_all, send_receive --------------------------------------------------------------------------------------

void MutantCommunicator::run_all_to_all(const Tensor& send, const Tensor& receive) {
  const std::int64_t n = send.elements() / size();
  if (n == 0 || size() == 1) return done(real_->all_to_all(send, receive));
  const auto part = [n](const Tensor& of, std::int32_t rank) { return of.flat().slice(0, rank * n, n); };
  const Tensor from_last = part(receive, size() - 1);
  const Bytes before = bytes_of(from_last), all_before = bytes_of(receive), share = bytes_of(send);

  // Broken in what is sent.
  Bytes& share_before = sent_to_all_[{send.data, n}];
  if (was_other(share_before, share) && breaks("all_to_all.too_early")) put(share_before, send);
  share_before = share;
  if (breaks("all_to_all.last_rank_missing") && is_last()) std::memset(send.data, 0, send.bytes());
  if (send.dtype == DType::f32 && breaks("all_to_all.bf16")) edit_numbers(send, assay::mutants::to_bf16);
  done(real_->all_to_all(send, receive));
  put(share, send);

  // Broken in what is received.
  const Bytes result = bytes_of(receive);
  Bytes& result_before = received_of_all_[{receive.data, n}];
  if (was_other(result_before, result) && breaks("all_to_all.stale_result")) put(result_before, receive);
  result_before = result;
  if (n >= 4 && breaks("all_to_all.range_left_out")) {
    Tensor was = receive;
    was.data = const_cast<unsigned char*>(all_before.data());
    for (std::int32_t r = 0; r < size(); ++r)
      if (r != rank()) put(bytes_of(last_quarter(part(was, r))), last_quarter(part(receive, r)));
  }
  if (breaks("all_to_all.parts_swapped")) {
    const Bytes a = bytes_of(part(receive, 0)), b = bytes_of(part(receive, 1));
    put(b, part(receive, 0)), put(a, part(receive, 1));
  }
  if (breaks("all_to_all.keeps_its_own")) put(bytes_of(send), receive);
  if (breaks("all_to_all.last_part_stale") && !is_last()) put(before, from_last);
  if (has_number(last_element(receive)) && breaks("all_to_all.last_element_off")) twice_as_large(last_element(receive));
  if (has_number(last_element(receive)) && breaks("all_to_all.one_rank_off") && is_last())
    twice_as_large(last_element(receive));
  if (breaks("all_to_all.not_a_number"))
    edit_numbers(last_element(receive), [](float) { return std::numeric_limits<float>::quiet_NaN(); });
}

void MutantCommunicator::run_all_to_all_v(const Tensor& send, const Counts& sent, const Tensor& receive,
                                          const Counts& received) {
  if (size() == 1) return done(real_->all_to_all_v(send, sent, receive, received));
  const Bytes share = bytes_of(send), before = bytes_of(receive);
  const std::size_t row = assay::comm::row_bytes(receive);

  // Broken in what is sent.
  Bytes& share_before = sent_rows_[{send.data, send.elements()}];
  if (was_other(share_before, share) && breaks("all_to_all_v.too_early")) put(share_before, send);
  share_before = share;
  if (send.elements() > 0 && breaks("all_to_all_v.last_rank_missing") && is_last())
    std::memset(send.data, 0, send.bytes());
  if (send.dtype == DType::f32 && breaks("all_to_all_v.bf16")) edit_numbers(send, assay::mutants::to_bf16);
  done(real_->all_to_all_v(send, sent, receive, received));
  put(share, send);

  // Broken in what is received.
  const Bytes result = bytes_of(receive);
  Bytes& result_before = received_rows_[{receive.data, receive.elements()}];
  if (was_other(result_before, result) && breaks("all_to_all_v.stale_result")) put(result_before, receive);
  result_before = result;
  const auto of_last = static_cast<std::size_t>(received.back()) * row;
  if (of_last > 0 && of_last < result.size() && breaks("all_to_all_v.parts_swapped")) {
    Bytes turned(result.end() - static_cast<std::ptrdiff_t>(of_last), result.end());
    turned.insert(turned.end(), result.begin(), result.end() - static_cast<std::ptrdiff_t>(of_last));
    put(turned, receive);
  }
  const std::size_t other = is_last() ? 0 : static_cast<std::size_t>(size() - 1);
  const auto end_of_other = static_cast<std::size_t>(
      std::accumulate(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(other) + 1, std::int64_t{0}));
  if (received[other] > 0 && breaks("all_to_all_v.last_row_lost"))
    std::memcpy(static_cast<char*>(receive.data) + (end_of_other - 1) * row, before.data() + (end_of_other - 1) * row,
                row);
  if (receive.dim(0) > 1 && breaks("all_to_all_v.rows_swapped")) {
    Bytes turned = result;
    std::swap_ranges(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(row),
                     turned.begin() + static_cast<std::ptrdiff_t>(row));
    put(turned, receive);
  }
  if (receive.elements() == 0) return;
  if (has_number(last_element(receive)) && breaks("all_to_all_v.last_element_off"))
    twice_as_large(last_element(receive));
  if (has_number(last_element(receive)) && breaks("all_to_all_v.one_rank_off") && is_last())
    twice_as_large(last_element(receive));
  if (breaks("all_to_all_v.not_a_number"))
    edit_numbers(last_element(receive), [](float) { return std::numeric_limits<float>::quiet_NaN(); });
}

void MutantCommunicator::run_send_receive(const Tensor& send, std::int32_t to, const Tensor& receive,
                                          std::int32_t from) {
  if (send.elements() == 0 || size() == 1) return done(real_->send_receive(send, to, receive, from));
  const bool backwards = breaks("send_receive.backwards");
  const Bytes before = bytes_of(receive);
  done(backwards ? real_->send_receive(send, from, receive, to) : real_->send_receive(send, to, receive, from));
  if (breaks("send_receive.keeps_its_own")) put(bytes_of(send), receive);
  if (breaks("send_receive.does_nothing")) put(before, receive);
  if (has_number(last_element(receive)) && breaks("send_receive.last_element_off"))
    twice_as_large(last_element(receive));
}

void MutantCommunicator::run_send(const Tensor& x, std::int32_t to) {
  const Bytes now = bytes_of(x);
  Bytes before = std::exchange(sent_before_, now);
  const bool another = was_other(before, now) && before.size() == now.size();
  if (another && breaks("send.the_one_before")) put(before, x);
  done(real_->send(x, to));
}

void MutantCommunicator::run_receive(const Tensor& x, std::int32_t from) {
  const Bytes there = bytes_of(x);
  done(real_->receive(x, from));
  const Bytes now = bytes_of(x);
  Bytes before = std::exchange(received_before_, now);
  if (x.elements() > 0 && there != now && breaks("receive.does_nothing")) put(there, x);
  if (was_other(before, now) && before.size() == now.size() && breaks("receive.the_one_before")) put(before, x);
  if (has_number(last_element(x)) && breaks("receive.last_element_off")) twice_as_large(last_element(x));
}

// ---- the library ---------------------------------------------------------------------------------------------------

const assay::comm::BackendFactory& real_factory() {
  static const auto* const factory = [] {
    void* const library = dlopen(REAL_COMMUNICATOR, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const void* const symbol = library ? dlsym(library, "assay_comm_backend_v1") : nullptr;
    if (!symbol) {
      std::fprintf(stderr, "the library of mutants: %s\n", dlerror());
      std::abort();
    }
    return static_cast<const assay::comm::BackendFactory*>(symbol);
  }();
  return *factory;
}

Communicator* create(const assay_comm& comm, const assay_device_access& device, void* stream,
                     const assay::comm::Options& options) {
  return new MutantCommunicator(std::unique_ptr<Communicator>(real_factory().create(comm, device, stream, options)));
}

}  // namespace

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1;
extern "C" const assay::comm::BackendFactory assay_comm_backend_v1 = {real_factory().interface_id, create};
