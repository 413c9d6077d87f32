#include "sum_of_ranks.hpp"

#include <assay/workload/open_backend.hpp>
#include <cmath>

namespace node_check {

using assay::DeviceMemory;
using assay::comm::Collective;
using assay::comm::Reduction;
using assay::compute::DType;
using assay::compute::Tensor;

SumOfRanks::SumOfRanks(const assay::Host& host, const Settings& settings)
    : host_(host),
      settings_(settings),
      message_(assay::comm::plan_message(Collective::all_reduce, settings.bytes, size_of(DType::f32), settings.ranks)),
      exact_(DType::f32, Reduction::sum, settings.ranks) {}

assay::Work SumOfRanks::work() const {
  return {.bytes = static_cast<std::uint64_t>(message_.bytes * settings_.repeats)};
}

void SumOfRanks::setup(const Launch& launch) {
  launch.report(message_bytes_metric, message_.bytes);
  backend_ = assay::workload::open_backend(host_, launch);
  communicator_ = assay::comm::open_communicator(host_, launch, "auto");
  host_.info(communicator_->description());
  time_ = assay::comm::CollectiveTime(*backend_);
  const auto take = [&](const char* label) {
    DeviceMemory memory(host_, ASSAY_MEMORY_COMMUNICATION, static_cast<std::size_t>(message_.bytes), label);
    communicator_->register_memory(memory.data(), memory.bytes());
    return memory;
  };
  send_memory_ = take("sent");
  receive_memory_ = take("received");
  send_ = Tensor(send_memory_.data(), DType::f32, {message_.larger});
  receive_ = Tensor(receive_memory_.data(), DType::f32, {message_.larger});
  assay::comm::Pieces(*backend_).write(send_, {DType::f32, exact_.sent_by(settings_.rank)});
  // Libraries connect, and find out what they cannot do, in the first collective.
  communicator_->wait(enqueue());
  communicator_->take_totals();
  spoiled_.take_memory(host_, *backend_, {{"what is received", receive_.elements()}});
}

assay::comm::Ticket SumOfRanks::enqueue() { return communicator_->all_reduce(send_, receive_, Reduction::sum); }

void SumOfRanks::run(const Launch& launch) {
  {
    const auto phase = launch.phase(all_reduce_phase);
    for (std::int64_t i = 0; i < settings_.repeats; ++i) time_.run(launch, *communicator_, [&] { return enqueue(); });
  }
  time_.end_step(launch, *communicator_);
  if (settings_.fault != Fault::none && launch.iteration() == 0) spoil();
}

assay::Account SumOfRanks::account(const Launch&) {
  const std::uint64_t steps = time_.steps(*communicator_, static_cast<std::uint64_t>(settings_.repeats));
  if (settings_.fault != Fault::not_a_number) (void)spoiled_.read(*backend_, {receive_});
  return {.steps = steps};
}

void SumOfRanks::spoil() const {
  const Tensor element = send_.slice(0, message_.larger / 2, 1);
  float value = 0;
  backend_->download(&value, element);
  value = settings_.fault == Fault::not_a_number ? NAN : value + 1;
  backend_->upload(element, &value);
}

void SumOfRanks::finish(const Launch& launch) {
  const double bandwidth = assay::comm::algorithm_bandwidth_gbs(message_.bytes, time_.mean_ms(*communicator_));
  launch.report(algorithm_bandwidth_metric, bandwidth);
  launch.report(bus_bandwidth_metric, bandwidth * assay::comm::bus_factor(Collective::all_reduce, settings_.ranks));
}

Findings SumOfRanks::compare(const Tensor& x, const std::vector<std::int32_t>& expected, const char* what) const {
  const assay::comm::Comparison found = assay::comm::Pieces(*backend_).compare(x, {DType::f32, expected}, 0, 0);
  Findings mine{.checked = found.checked, .wrong = found.wrong, .first = {}};
  if (found.first)
    mine.first = "element " + std::to_string(found.first->index) + " of what was " + what + " is " +
                 number(found.first->got) + ", expected " + number(found.first->expected);
  return mine;
}

std::string SumOfRanks::verify(const Launch& launch) {
  // What the last measured step has left; then once more, where nothing of that is left.
  const std::vector<std::int32_t> sums = exact_.reduced();
  Findings found = compare(send_, exact_.sent_by(settings_.rank), "sent");
  found.add(compare(receive_, sums, "received"));
  assay::comm::Pieces(*backend_).spoil(receive_);
  communicator_->wait(enqueue());
  communicator_->synchronize();
  found.add(compare(receive_, sums, "received"));
  return verdict_of_ranks(host_, launch, found,
                          "what was sent, and what the last timed all-reduce and one more have left (those before are "
                          "overwritten)") +
         "; " + communicator_->description();
}

}  // namespace node_check
