#include "suite.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <numeric>

#include "values.hpp"

namespace assay::test {
namespace {

using comm::Reduction;
using compute::DType;
using compute::Tensor;

constexpr std::size_t sizes[] = {0, 1, 2, 3, 1001, 65537, (1 << 20) + 3};
constexpr std::size_t largest_of_sizes = (1 << 20) + 3;
constexpr std::size_t guard_bytes = 256;  // behind what a collective may write
constexpr char guard_value = 0x5a;
constexpr std::size_t shown_failures = 5;

const char* name_of_reduction(Reduction r) {
  return r == Reduction::sum ? "sum" : r == Reduction::average ? "average" : "max";
}

std::int64_t total(const std::vector<std::int64_t>& x) { return std::accumulate(x.begin(), x.end(), std::int64_t{0}); }

Tensor vector_at(void* address, DType dtype, std::size_t n) {
  return Tensor(address, dtype, {static_cast<std::int64_t>(n)});
}

}  // namespace

CommunicatorSuite::CommunicatorSuite(comm::Communicator& communicator, const assay_comm& ranks, SuiteMemory memory,
                                     std::size_t largest_bytes)
    : comm_(communicator), ranks_(ranks), memory_(std::move(memory)), largest_bytes_(largest_bytes) {}

std::size_t CommunicatorSuite::bytes_needed(std::int32_t ranks, std::size_t largest_bytes) {
  const std::size_t one_rank = std::min(largest_bytes, largest_of_sizes * sizeof(float));
  return std::max(largest_bytes, one_rank * static_cast<std::size_t>(ranks)) + guard_bytes;
}

std::string CommunicatorSuite::name_of(const Check& c) {
  static constexpr const char* operations[] = {"all_reduce",   "reduce_scatter", "reduce",
                                               "all_gather",   "broadcast",      "all_to_all",
                                               "all_to_all_v", "send_receive",   "pass_on"};
  std::string name = std::string(operations[static_cast<int>(c.operation)]) + " of " + std::to_string(c.n) + " " +
                     compute::name_of(c.dtype);
  if (c.operation == Operation::all_reduce || c.operation == Operation::reduce_scatter ||
      c.operation == Operation::reduce)
    name += std::string(", ") + name_of_reduction(c.reduction);
  if (has_one_tensor(c.operation)) name += ", root " + std::to_string(c.root);
  if (c.operation == Operation::all_to_all_v) name += ", counts " + std::to_string(c.turn);
  if (c.operation == Operation::send_receive) name += ", to rank + " + std::to_string(c.distance);
  return name + (c.in_place ? ", in place" : "");
}

void CommunicatorSuite::note(bool right, const std::string& what) {
  if (right) return;
  ++failure_count_;
  if (failures_.size() < shown_failures) failures_.push_back(what);
}

// What a rank sends. Averages are of multiples of the number of ranks, which no dtype has to round.
void CommunicatorSuite::append_sent(std::vector<char>& bytes, const Check& c, std::int32_t rank, std::size_t begin,
                                    std::size_t count) const {
  const int factor = c.reduction == Reduction::average ? comm_.size() : 1;
  append_by_phase(bytes, c.dtype, salt_, begin, count,
                  [&](std::size_t phase) { return factor * small_integer(phase, rank); });
}

void CommunicatorSuite::append_input(std::vector<char>& bytes, const Check& c, std::int32_t rank) const {
  const bool has_parts = c.operation == Operation::reduce_scatter || c.operation == Operation::all_to_all;
  std::size_t count = has_parts ? c.n * static_cast<std::size_t>(comm_.size()) : c.n;
  if (c.operation == Operation::all_to_all_v) count = static_cast<std::size_t>(total(rows_sent(c, rank)) * width_of(c));
  append_sent(bytes, c, rank, 0, count);
}

std::vector<char> CommunicatorSuite::input(const Check& c, std::int32_t rank) const {
  std::vector<char> bytes;
  append_input(bytes, c, rank);
  return bytes;
}

std::vector<char> CommunicatorSuite::expected(const Check& c) const {
  std::vector<char> bytes;
  append_expected(bytes, c);
  return bytes;
}

void CommunicatorSuite::append_expected(std::vector<char>& bytes, const Check& c) const {
  const auto own = static_cast<std::size_t>(comm_.rank());
  switch (c.operation) {
    case Operation::broadcast: return append_input(bytes, c, c.root);
    case Operation::send_receive: return append_input(bytes, c, source_of(c));
    case Operation::pass_on:
      if (comm_.size() == 1) return append_input(bytes, c, 0);
      if (comm_.rank() > 0) append_input(bytes, c, comm_.rank() - 1);
      return;
    case Operation::all_to_all:
      for (std::int32_t r = 0; r < comm_.size(); ++r) append_sent(bytes, c, r, c.n * own, c.n);
      return;
    case Operation::all_to_all_v:
      for (std::int32_t r = 0; r < comm_.size(); ++r) {
        const std::vector<std::int64_t> rows = rows_sent(c, r);
        const auto before = std::accumulate(rows.begin(), rows.begin() + comm_.rank(), std::int64_t{0});
        append_sent(bytes, c, r, static_cast<std::size_t>(before * width_of(c)),
                    static_cast<std::size_t>(rows_between(c, r, comm_.rank()) * width_of(c)));
      }
      return;
    case Operation::all_gather:
      for (std::int32_t r = 0; r < comm_.size(); ++r) append_input(bytes, c, r);
      return;
    case Operation::reduce:
      if (comm_.rank() != c.root) return;  // undefined
      break;
    case Operation::all_reduce:
    case Operation::reduce_scatter: break;
  }
  const std::size_t begin = c.operation == Operation::reduce_scatter ? c.n * own : 0;
  append_by_phase(bytes, c.dtype, salt_, begin, c.n, [&](std::size_t phase) {
    int sum = 0, most = -100;
    for (std::int32_t r = 0; r < comm_.size(); ++r) {
      const int x = small_integer(phase, r);
      sum += x, most = std::max(most, x);
    }
    return c.reduction == Reduction::max ? most : sum;
  });
}

std::int32_t CommunicatorSuite::source_of(const Check& c) const {
  return (comm_.rank() - c.distance + comm_.size()) % comm_.size();
}

std::int64_t CommunicatorSuite::width_of(const Check& c) { return c.n >= 8 ? 7 : 1; }
// A third of all are none. The last rank sends nothing in turn 0, and receives nothing in turn 1.
std::int64_t CommunicatorSuite::rows_between(const Check& c, std::int32_t from, std::int32_t to) const {
  const auto most = static_cast<std::int64_t>(c.n) / width_of(c);
  const bool silent = c.turn == 0 && from == comm_.size() - 1, deaf = c.turn == 1 && to == comm_.size() - 1;
  return silent || deaf ? 0 : most * ((2 * from + to + c.turn) % 3) / 2;
}
std::vector<std::int64_t> CommunicatorSuite::rows_sent(const Check& c, std::int32_t from) const {
  std::vector<std::int64_t> rows;
  for (std::int32_t to = 0; to < comm_.size(); ++to) rows.push_back(rows_between(c, from, to));
  return rows;
}
std::vector<std::int64_t> CommunicatorSuite::rows_received(const Check& c, std::int32_t to) const {
  std::vector<std::int64_t> rows;
  for (std::int32_t from = 0; from < comm_.size(); ++from) rows.push_back(rows_between(c, from, to));
  return rows;
}

comm::Ticket CommunicatorSuite::start(const Check& c, char* send, char* receive) {
  const std::size_t all = c.n * static_cast<std::size_t>(comm_.size());
  switch (c.operation) {
    case Operation::all_reduce:
      return comm_.all_reduce(vector_at(send, c.dtype, c.n), vector_at(receive, c.dtype, c.n), c.reduction);
    case Operation::reduce_scatter:
      return comm_.reduce_scatter(vector_at(send, c.dtype, all), vector_at(receive, c.dtype, c.n), c.reduction);
    case Operation::all_gather:
      return comm_.all_gather(vector_at(send, c.dtype, c.n), vector_at(receive, c.dtype, all));
    case Operation::all_to_all:
      return comm_.all_to_all(vector_at(send, c.dtype, all), vector_at(receive, c.dtype, all));
    case Operation::all_to_all_v: {
      const std::vector<std::int64_t> sent = rows_sent(c, comm_.rank()), received = rows_received(c, comm_.rank());
      return comm_.all_to_all_v(Tensor(send, c.dtype, {total(sent), width_of(c)}), sent,
                                Tensor(receive, c.dtype, {total(received), width_of(c)}), received);
    }
    case Operation::send_receive:
      return comm_.send_receive(vector_at(send, c.dtype, c.n), (comm_.rank() + c.distance) % comm_.size(),
                                vector_at(receive, c.dtype, c.n), source_of(c));
    case Operation::pass_on: {
      const Tensor sent = vector_at(send, c.dtype, c.n), received = vector_at(receive, c.dtype, c.n);
      const std::int32_t rank = comm_.rank(), last = comm_.size() - 1;
      if (last == 0) return comm_.send_receive(sent, 0, received, 0);
      const comm::Ticket ticket = rank > 0 ? comm_.receive(received, rank - 1) : 0;
      return rank < last ? comm_.send(sent, rank + 1) : ticket;
    }
    case Operation::reduce: return comm_.reduce(vector_at(receive, c.dtype, c.n), c.root, c.reduction);
    case Operation::broadcast: break;
  }
  return comm_.broadcast(vector_at(receive, c.dtype, c.n), c.root);
}

void CommunicatorSuite::check(const Check& c) {
  ++salt_;
  // Kept from check to check: new memory for each would be faulted in page by page.
  std::vector<char>&sent = sent_, &wanted = wanted_, &after = after_;
  sent.clear(), wanted.clear();
  append_input(sent, c, comm_.rank());
  append_expected(wanted, c);
  const std::size_t part = static_cast<std::size_t>(comm_.rank()) * c.n * size_of(c.dtype);
  // Where the two tensors lie.
  char* send = memory_.send;
  char* receive = memory_.receive;
  if (has_one_tensor(c.operation)) send = receive;
  if (c.in_place && c.operation == Operation::all_reduce) receive = send;
  if (c.in_place && c.operation == Operation::reduce_scatter) receive = send + part;
  if (c.in_place && c.operation == Operation::all_gather) send = receive + part;

  after.assign(std::max(sent.size(), wanted.size()) + guard_bytes, guard_value);
  memory_.upload(receive, after.data(), wanted.size() + guard_bytes);
  if (!c.in_place) memory_.upload(send + sent.size(), after.data(), guard_bytes);
  memory_.upload(send, sent.data(), sent.size());
  comm_.wait(start(c, send, receive));
  if (c.operation == Operation::reduce && comm_.rank() != c.root) return;  // whose data are undefined
  memory_.download(after.data(), receive, wanted.size() + (c.in_place ? 0 : guard_bytes));

  if (!std::equal(wanted.begin(), wanted.end(), after.begin())) {  // in one go, which a search for the place is not
    const auto wrong = std::mismatch(wanted.begin(), wanted.end(), after.begin());
    const auto place = static_cast<std::size_t>(wrong.first - wanted.begin()) / size_of(c.dtype);
    note(false, name_of(c) + ": wrong from element " + std::to_string(place) + " on");
  }
  if (!c.in_place)
    note(std::all_of(after.begin() + static_cast<std::ptrdiff_t>(wanted.size()),
                     after.begin() + static_cast<std::ptrdiff_t>(wanted.size() + guard_bytes),
                     [](char x) { return x == guard_value; }),
         name_of(c) + ": wrote behind its result");
  if (!c.in_place && !has_one_tensor(c.operation)) {
    memory_.download(after.data(), send, sent.size());
    note(std::equal(sent.begin(), sent.end(), after.begin()), name_of(c) + ": changed what it was to send");
  }
  ++exact_;
}

// Sums of random numbers against float64. Tolerance: a rounding of half an ulp for each rank, on the sum of magnitudes.
void CommunicatorSuite::check_random(DType dtype, std::size_t n, Reduction reduction) {
  ++salt_;
  const auto value = [&](std::int32_t rank, std::size_t i) {
    const float x = random_value(salt_, rank, i);
    return dtype == DType::bf16 ? from_bf16(bf16_bits(x)) : x;
  };
  std::vector<char> bytes;
  append(bytes, dtype, n, [&](std::size_t i) { return value(comm_.rank(), i); });
  memory_.upload(memory_.send, bytes.data(), bytes.size());
  comm_.wait(start({Operation::all_reduce, dtype, reduction, n, false}, memory_.send, memory_.receive));
  memory_.download(bytes.data(), memory_.receive, bytes.size());

  const std::string name = std::string("all_reduce of ") + std::to_string(n) + " random " + compute::name_of(dtype) +
                           ", " + name_of_reduction(reduction);
  const double unit = (dtype == DType::bf16 ? std::ldexp(1.0, -8) : std::ldexp(1.0, -24)) * comm_.size();
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0, magnitude = 0;
    for (std::int32_t r = 0; r < comm_.size(); ++r) sum += value(r, i), magnitude += std::fabs(value(r, i));
    if (reduction == Reduction::average) sum /= comm_.size(), magnitude /= comm_.size();
    float got = 0;
    if (dtype == DType::bf16) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
      got = from_bf16(bits);
    } else {
      std::memcpy(&got, bytes.data() + i * sizeof got, sizeof got);
    }
    if (std::fabs(got - sum) <= unit * magnitude) continue;
    note(false,
         name + ": element " + std::to_string(i) + " is " + std::to_string(got) + ", not " + std::to_string(sum));
    break;
  }
  ++random_;
  check_equal_on_all_ranks(name, bytes);
}

void CommunicatorSuite::check_equal_on_all_ranks(const std::string& name, const std::vector<char>& bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(comm_.size()));
  const std::string key = "suite/" + std::to_string(salt_);
  if (const assay_status s =
          ranks_.exchange(&ranks_, to_abi(key), ranks_.timeout_ms, &hash, sizeof hash, hashes.data());
      s != ASSAY_OK)
    throw Error(s, "");
  note(std::all_of(hashes.begin(), hashes.end(), [&](std::uint64_t h) { return h == hash; }),
       name + ": the ranks have different bits");
  ++equal_;
}

// Four all-reduces and a gather at once, with work of the compute stream between them, waited for in another order.
void CommunicatorSuite::check_many_in_flight() {
  constexpr std::size_t count = 4;
  const std::size_t n = 50003, bytes = n * sizeof(float);
  std::array<std::vector<char>, count> wanted;
  std::array<comm::Ticket, count> tickets{};
  std::array<Check, count> checks{};
  ++salt_;
  for (std::size_t k = 0; k < count; ++k) {
    checks[k] = {Operation::all_reduce, DType::f32, k % 2 ? Reduction::max : Reduction::sum, n - k, true};
    wanted[k] = expected(checks[k]);
    const std::vector<char> sent = input(checks[k], comm_.rank());
    memory_.upload(memory_.send + k * bytes, sent.data(), sent.size());
  }
  for (std::size_t k = 0; k < count; ++k) {
    char* at = memory_.send + k * bytes;
    tickets[k] = start(checks[k], at, at);
    memory_.compute();
  }
  const Check gather{Operation::all_gather, DType::f32, Reduction::sum, 7, true};
  const std::vector<char> own = input(gather, comm_.rank()), all = expected(gather);
  char* part = memory_.receive + static_cast<std::size_t>(comm_.rank()) * own.size();
  memory_.upload(part, own.data(), own.size());
  comm_.wait(start(gather, part, memory_.receive));
  std::vector<char> got(bytes);
  memory_.download(got.data(), memory_.receive, all.size());
  note(std::equal(all.begin(), all.end(), got.begin()), "an all_gather behind four all_reduces is wrong");
  for (const std::size_t k : {2U, 0U, 3U, 1U}) {
    memory_.compute();
    comm_.wait(tickets[k]);
    memory_.download(got.data(), memory_.send + k * bytes, wanted[k].size());
    note(std::equal(wanted[k].begin(), wanted[k].end(), got.begin()),
         "all_reduce " + std::to_string(k) + " of four in flight is wrong");
    ++in_flight_;
  }
}

// Of all kinds at once in one graph, replayed on two sets of data, with an eager one between them; or a refusal.
void CommunicatorSuite::check_captured() {
  const std::size_t n = 5003, bytes = n * sizeof(float), room = bytes * static_cast<std::size_t>(comm_.size());
  const auto sum = Reduction::sum;
  const std::array<Check, 9> checks{{{Operation::all_reduce, DType::f32, sum, n, false},
                                     {Operation::reduce_scatter, DType::f32, Reduction::max, n, false},
                                     {Operation::all_gather, DType::f32, sum, n, false},
                                     {Operation::all_to_all, DType::f32, sum, n, false},
                                     {Operation::all_to_all_v, DType::f32, sum, n, false, 0, 1, 2},
                                     {Operation::send_receive, DType::f32, sum, n, false, 0, 1},
                                     {Operation::pass_on, DType::f32, sum, n, false},
                                     {Operation::reduce, DType::f32, sum, n, false, comm_.size() - 1},
                                     {Operation::broadcast, DType::f32, sum, n, false, comm_.size() - 1}}};
  const auto enqueue = [&] {
    std::array<comm::Ticket, 9> tickets{};
    for (std::size_t k = 0; k < checks.size(); ++k) {
      tickets[k] = start(checks[k], memory_.send + k * room, memory_.receive + k * room);
      memory_.compute();
    }
    comm_.wait(tickets[2]);
    memory_.compute();
    comm_.wait(tickets[8]);
  };
  comm_.wait(start(checks[0], memory_.send, memory_.receive));
  const std::unique_ptr<compute::Graph> graph = memory_.capture(enqueue);
  if (!graph) return;
  std::vector<char> got(room);
  for (int replay = 0; replay < 2; ++replay) {
    ++salt_;
    for (std::size_t k = 0; k < checks.size(); ++k) {
      const std::vector<char> sent = input(checks[k], comm_.rank());
      char* const to = has_one_tensor(checks[k].operation) ? memory_.receive : memory_.send;
      memory_.upload(to + k * room, sent.data(), sent.size());
    }
    graph->launch();
    comm_.synchronize();
    for (std::size_t k = 0; k < checks.size(); ++k) {
      const std::vector<char> wanted = expected(checks[k]);
      memory_.download(got.data(), memory_.receive + k * room, wanted.size());
      note(std::equal(wanted.begin(), wanted.end(), got.begin()), name_of(checks[k]) + ": wrong in a replayed graph");
      ++replayed_;
    }
    check(checks[0]);
  }
}

bool CommunicatorSuite::reduces(DType dtype) const {
  return dtype == DType::f32 || dtype == DType::bf16 || (dtype == DType::f16 && comm_.backend() != std::string("gloo"));
}

// A dtype that the backend does not reduce is refused at the call, and the communicator lives on.
void CommunicatorSuite::check_refused(DType dtype) {
  const std::string name = std::string("all_reduce of ") + compute::name_of(dtype);
  try {
    comm_.wait(start({Operation::all_reduce, dtype, Reduction::sum, 8, true}, memory_.send, memory_.send));
    note(false, name + " was not refused");
  } catch (const Error& e) {
    note(e.status() == ASSAY_UNSUPPORTED && std::string(e.what()).find(compute::name_of(dtype)) != std::string::npos,
         name + " was refused with another status or text: " + e.what());
  }
  ++refused_;
}

void CommunicatorSuite::check_totals() {
  comm_.take_totals();
  comm_.wait(start({Operation::all_reduce, DType::f32, Reduction::sum, 1000, true}, memory_.send, memory_.send));
  comm_.wait(start({Operation::all_gather, DType::f32, Reduction::sum, 10, false}, memory_.send, memory_.receive));
  comm_.barrier();
  const comm::Totals t = comm_.take_totals();
  note(t.collectives == 2 && t.bytes == 4000 + 40 * static_cast<std::uint64_t>(comm_.size()),
       "the totals are of " + std::to_string(t.collectives) + " collectives and " + std::to_string(t.bytes) + " bytes");
  note(t.busy_ms > 0 && t.exposed_ms >= 0, "the totals state no time");
  note(comm_.take_totals().collectives == 0, "take_totals does not start anew");
}

void CommunicatorSuite::run() {
  // NCCL multiplies by 1/n before it adds: a rounding, unless n is a power of two. The sums of random numbers have
  // their tolerance.
  const bool power_of_two = (comm_.size() & (comm_.size() - 1)) == 0;
  const bool averages_exactly = power_of_two || std::string_view(comm_.backend()) != "nccl";
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (!reduces(dtype)) {
      check_refused(dtype);
      continue;
    }
    for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter})
      for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::max}) {
        if (reduction == Reduction::average && !averages_exactly) continue;
        for (const std::size_t n : sizes) {
          if (n * sizeof(float) > largest_bytes_) continue;
          for (const bool in_place : {false, true}) check({operation, dtype, reduction, n, in_place});
        }
      }
    for (const Reduction reduction : {Reduction::sum, Reduction::average}) {
      if (reduction == Reduction::average && !averages_exactly) continue;
      for (const std::size_t n : sizes)
        for (std::int32_t root = 0; root < comm_.size() && n * sizeof(float) <= largest_bytes_; ++root)
          check({Operation::reduce, dtype, reduction, n, false, root});
    }
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8})
    for (const std::size_t n : sizes) {
      if (n * size_of(dtype) > std::min(largest_bytes_, largest_of_sizes * sizeof(float))) continue;
      for (const bool in_place : {false, true}) check({Operation::all_gather, dtype, Reduction::sum, n, in_place});
      check({Operation::all_to_all, dtype, Reduction::sum, n, false});
      for (std::int32_t turn = 0; turn < 3; ++turn)
        check({Operation::all_to_all_v, dtype, Reduction::sum, n, false, 0, 1, turn});
      for (std::int32_t distance = 0; distance < comm_.size(); ++distance)
        check({Operation::send_receive, dtype, Reduction::sum, n, false, 0, distance});
      check({Operation::pass_on, dtype, Reduction::sum, n, false});
      for (std::int32_t root = 0; root < comm_.size(); ++root)
        check({Operation::broadcast, dtype, Reduction::sum, n, false, root});
    }
  check({Operation::all_reduce, DType::f32, Reduction::sum, largest_bytes_ / sizeof(float), true});
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Reduction reduction : {Reduction::sum, Reduction::average})
      for (const std::size_t n : {std::size_t{1001}, std::size_t{200003}}) check_random(dtype, n, reduction);
  check_many_in_flight();
  if (comm_.captures() && memory_.capture) check_captured();
  check_totals();
  comm_.barrier();
}

std::string CommunicatorSuite::text() const {
  std::string text;
  if (passed()) {
    text = std::to_string(exact_) + " collectives equal their references to the bit, " + std::to_string(random_) +
           " sums of random numbers are within a rounding per rank of float64's and equal on all ranks, " +
           std::to_string(in_flight_) + " in flight at once";
    if (replayed_ > 0) text += ", " + std::to_string(replayed_) + " in replays of a graph";
    if (refused_ > 0) text += "; reductions of fp16 are refused";
  } else {
    text = std::to_string(failure_count_) + " mistakes; the first: ";
    for (const std::string& f : failures_) text += f + "; ";
  }
  return text;
}

}  // namespace assay::test
