#include "workload.hpp"

#include <algorithm>
#include <assay/workload/open_backend.hpp>

namespace all_reduce {

using assay::DeviceMemory;
using assay::comm::Collective;
using assay::comm::has_a_smaller_buffer;
using assay::comm::MemoryKind;
using assay::comm::Message;
using assay::comm::Registration;
using assay::comm::Ticket;
using assay::compute::Tensor;

namespace {

// The copy engines' memory is that of windows.
MemoryKind kind_taken(Registration registration, bool copy_engines) {
  switch (registration) {
    case Registration::none: return MemoryKind::any_memory;
    case Registration::plain: return MemoryKind::registered;
    case Registration::symmetric: break;
  }
  return copy_engines ? MemoryKind::copy_engines : MemoryKind::windows;
}

// A kept choice is found by this text, beside the ranks and the library.
std::string text_of(const Settings& settings) {
  std::string text = std::to_string(settings.message.bytes) + " bytes " + assay::compute::name_of(settings.dtype);
  if (assay::comm::reduces(settings.collective)) text += " " + settings.reduction_name;
  if (settings.in_place) text += " in place";
  if (settings.repeats > 1) text += ", " + std::to_string(settings.repeats) + " in a row";
  return text;
}

}  // namespace

Workload::Workload(const assay::Case& c) : host_(c.host()), settings_(c) {}

assay::Work Workload::work() const {
  return {.bytes = static_cast<std::uint64_t>(settings_.message.bytes * settings_.repeats)};
}

assay::comm::CollectiveMemory Workload::take_memory(std::size_t bytes, const char* label) {
  assay::comm::CollectiveMemory memory(host_, *communicator_, settings_.registration, ASSAY_MEMORY_COMMUNICATION, bytes,
                                       label);
  if (settings_.kind) assay::comm::require_registration("mode", *settings_.kind, memory.registration(), *communicator_);
  return memory;
}

std::size_t Workload::other_bytes() const {
  const Message& m = settings_.message;
  return static_cast<std::size_t>(has_a_smaller_buffer(settings_.collective) ? m.part : m.larger) *
         size_of(settings_.dtype);
}

Workload::Buffers Workload::buffers(bool in_place, void* other) const {
  const Message& m = settings_.message;
  const Tensor larger(larger_memory_.data(), settings_.dtype, {m.larger});
  if (settings_.collective == Collective::broadcast) return {larger, larger};
  const std::int64_t other_elements = has_a_smaller_buffer(settings_.collective) ? m.part : m.larger;
  const Tensor smaller = !in_place                                    ? Tensor(other, settings_.dtype, {other_elements})
                         : has_a_smaller_buffer(settings_.collective) ? larger.slice(0, settings_.rank * m.part, m.part)
                                                                      : larger;
  return settings_.collective == Collective::all_gather ? Buffers{smaller, larger} : Buffers{larger, smaller};
}

Ticket Workload::enqueue(const Buffers& b) {
  switch (settings_.collective) {
    case Collective::all_reduce: return communicator_->all_reduce(b.send, b.receive, settings_.reduction);
    case Collective::reduce_scatter: return communicator_->reduce_scatter(b.send, b.receive, settings_.reduction);
    case Collective::all_gather: return communicator_->all_gather(b.send, b.receive);
    case Collective::all_to_all: return communicator_->all_to_all(b.send, b.receive);
    case Collective::send_receive:
      return communicator_->send_receive(b.send, settings_.next_rank, b.receive, settings_.previous_rank);
    case Collective::broadcast: break;
  }
  return communicator_->broadcast(b.send, settings_.root);
}

Ticket Workload::enqueue_series(const Buffers& b) {
  if (settings_.repeats == 1) return enqueue(b);
  communicator_->begin_series();
  for (std::int64_t i = 0; i < settings_.repeats; ++i) {
    (void)enqueue(b);
    if (settings_.waits_for_each) communicator_->synchronize();
  }
  return communicator_->end_series();
}

std::unique_ptr<assay::compute::Graph> Workload::capture(const Buffers& b, std::int64_t collectives) {
  return communicator_->watch(backend_->capture([&] {
    Ticket last = 0;
    for (std::int64_t i = 0; i < collectives; ++i) last = enqueue(b);
    communicator_->wait(last);
  }));
}

void Workload::setup(const Launch& launch) {
  const Message& m = settings_.message;
  launch.report(message_bytes_metric, m.bytes);
  launch.report(element_count_metric, m.count);
  backend_ = assay::workload::open_backend(host_, launch);
  time_ = assay::comm::CollectiveTime(*backend_);
  if (settings_.graph && std::string_view(backend_->kind()) == "cpu")
    throw assay::Error(
        ASSAY_UNSUPPORTED,
        "gloo cannot be captured in a graph; take execution = \"eager\", or backend = \"nccl\" on a GPU");
  if (settings_.measures_kinds) choose_kind(launch);
  open(launch);
  launch.report(registration_metric, larger_memory_.registration());
  launch.report(mode_taken_metric, kind_taken(larger_memory_.registration(), settings_.options.copy_engines));
  host_.info(communicator_->description());
  communicator_->take_totals();
  // The results of this first collective must not pass for those of the timed ones.
  if (!settings_.in_place) assay::comm::Pieces(*backend_).spoil(timed_.receive);
  prepare_account();
}

void Workload::open(const Launch& launch) {
  communicator_ = assay::comm::open_communicator(host_, launch, settings_.backend, settings_.options);
  larger_memory_ = take_memory(static_cast<std::size_t>(settings_.message.bytes), "buffer");
  if (!settings_.in_place) other_memory_ = take_memory(other_bytes(), "second buffer");
  timed_ = buffers(settings_.in_place, other_memory_.data());
  // The timed collectives read real numbers: small integers, which grow where sums are repeated in place (README.md).
  const assay::comm::PeriodicData own(settings_.dtype, exact_data().sent_by(settings_.rank));
  write_sent(timed_.send, own, 0);
  // Libraries connect, and find out what they cannot do, in the first collective.
  communicator_->wait(enqueue(timed_));
  communicator_->synchronize();
  if (settings_.graph) graph_ = capture(timed_, settings_.repeats);
}

void Workload::close() {
  graph_.reset();
  communicator_.reset();
  larger_memory_ = {}, other_memory_ = {};
}

void Workload::try_kind(const Launch& launch, MemoryKind kind, const std::function<void()>& use) {
  settings_.take(kind);
  struct Closing {
    Workload& of;
    ~Closing() { of.close(); }
  } const closing{*this};
  open(launch);
  if (use) use();
}

std::array<double, assay::comm::timed_rounds> Workload::time_kind(const Launch& launch, MemoryKind kind) {
  constexpr std::int64_t round_bytes = 16 << 20, most_steps = 50;  // so that a round of small messages can be timed
  const std::int64_t step_bytes = settings_.message.bytes * settings_.repeats;
  const std::int64_t steps =
      std::clamp<std::int64_t>(round_bytes / std::max<std::int64_t>(step_bytes, 1), 1, most_steps);
  std::array<double, assay::comm::timed_rounds> seconds{};
  try_kind(launch, kind, [&] {
    seconds = assay::comm::time_rounds(*communicator_, *backend_, assay::comm::steady_seconds, [&] {
      for (std::int64_t i = 0; i < steps; ++i) {
        if (graph_)
          graph_->launch();
        else
          communicator_->wait(enqueue_series(timed_));
      }
    });
  });
  for (double& of_round : seconds) of_round /= static_cast<double>(steps);
  return seconds;
}

void Workload::choose_kind(const Launch& launch) {
  const std::vector<MemoryKind> kinds =
      assay::comm::kinds_on(backend_->kind(), settings_.collective == Collective::all_gather);
  std::vector<assay::comm::TimedKind> timed;
  for (const MemoryKind kind : kinds) {
    timed.push_back({assay::comm::memory_kinds.name_of(kind), [&, kind] { return time_kind(launch, kind); }});
    if (kind != MemoryKind::any_memory) timed.back().open = [&, kind] { try_kind(launch, kind); };
  }
  std::string key;
  std::unique_ptr<assay::compute::KeptChoices> kept;
  if (kinds.size() > 1 && !assay::comm::carries_nothing_out(host_)) {
    const std::string library =
        assay::comm::open_communicator(host_, launch, settings_.backend, settings_.options)->description();
    kept = assay::compute::open_kept_choices(host_, "collectives", library);
    key = assay::comm::choice_key(host_, settings_.collective_name, library, settings_.graph, text_of(settings_));
  }
  const assay::comm::MeasuredChoice choice = assay::comm::choose_by_time(host_, "mode", key, kept.get(), timed);
  settings_.take(kinds[choice.kind]);
  host_.info("mode = \"measured\": " + choice.text);
}

void Workload::run_step(const Launch& launch) {
  const auto phase = launch.phase(collective_phase);
  if (graph_) return graph_->launch();
  time_.run(
      launch, *communicator_, [&] { return enqueue_series(timed_); }, static_cast<std::uint64_t>(settings_.repeats));
}

void Workload::run(const Launch& launch) {
  run_step(launch);
  time_.end_step(launch, *communicator_);
}

void Workload::finish(const Launch& launch) {
  const double ms = time_.mean_ms(*communicator_);
  const double bandwidth = assay::comm::algorithm_bandwidth_gbs(settings_.message.bytes, ms);
  launch.report(collective_us_metric, 1000 * ms);
  launch.report(algorithm_bandwidth_metric, bandwidth);
  launch.report(bus_bandwidth_metric, bandwidth * assay::comm::bus_factor(settings_.collective, settings_.ranks));
}

}  // namespace all_reduce
