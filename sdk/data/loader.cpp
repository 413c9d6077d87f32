#include <assay/data/loader.hpp>

#include <assay/plugin.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "order.hpp"

namespace assay::data {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr std::int64_t bytes_of_a_run = 65536;
// Announced ahead of what is read: enough that a disk has several dozen runs to fetch at any time.
constexpr std::int64_t bytes_ahead = 4 << 20;

std::int64_t run_of(const SampleShape& shape, const LoaderConfig& config) {
  if (config.run_samples > 0) return config.run_samples;
  const std::int64_t most = std::max<std::int64_t>(1, config.batch_size * config.ranks / 8);
  return std::clamp<std::int64_t>(bytes_of_a_run / static_cast<std::int64_t>(shape.bytes()), 1, most);
}

LoaderConfig checked(const SampleSource& source, const LoaderConfig& config) {
  const auto require = [](bool met, const std::string& text) {
    if (!met) throw Error(ASSAY_INVALID_ARGUMENT, "loader: " + text);
  };
  const auto at_least = [&](const char* name, std::int64_t value, std::int64_t least) {
    require(value >= least,
            std::string(name) + " is " + std::to_string(value) + "; expected at least " + std::to_string(least));
  };
  at_least("sequence_length", source.shape().sequence_length, 2);
  at_least("batch_size", config.batch_size, 1);
  at_least("ranks", config.ranks, 1);
  at_least("workers", config.workers, 1);
  at_least("prefetch", config.prefetch, 1);
  at_least("run_samples", config.run_samples, 0);
  require(config.rank >= 0 && config.rank < config.ranks, "rank is " + std::to_string(config.rank) +
                                                              "; expected less than the number of ranks, " +
                                                              std::to_string(config.ranks));
  require(source.samples() / config.ranks >= config.batch_size,
          std::to_string(source.samples()) + " samples are less than one batch of " +
              std::to_string(config.batch_size) + " for each of " + std::to_string(config.ranks) +
              " ranks; remedy: more samples, or a smaller batch");
  return config;
}

// The `count` samples of `samples` as rows `row`, row + 1, ... of a batch.
void put_rows(const std::int64_t* samples, std::int64_t count, std::int64_t row, std::int64_t batch_size,
              std::int64_t sequence, std::int64_t* batch) {
  const std::int64_t shifted = sequence - 1;
  std::int64_t* source = batch + row * sequence;
  std::int64_t* inputs = batch + batch_size * sequence + row * shifted;
  std::int64_t* labels = inputs + batch_size * shifted;
  const std::size_t row_bytes = static_cast<std::size_t>(sequence) * sizeof(std::int64_t);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t* target = samples + sequence;
    std::memcpy(source, samples, row_bytes);
    std::memcpy(inputs, target, row_bytes - sizeof(std::int64_t));
    std::memcpy(labels, target + 1, row_bytes - sizeof(std::int64_t));
    samples += 2 * sequence, source += sequence, inputs += shifted, labels += shifted;
  }
}

}  // namespace

// Batches are numbered from 0 since the last start_epoch that dropped something: their tickets. Ticket t lies in slot
// t mod slots, and
//   reclaimed_ <= delivered_ <= sent_ <= reclaimed_ + slots,   each claimed ticket < reclaimed_ + slots.
// A batch is filled in parts, whole runs of rows each, so that all workers serve the batch that is waited for. Parts
// are numbered through all batches. Who claims one first announces to the source the one that comes parts_ahead_ later.
class Loader::Workers {
 public:
  Workers(const SampleSource& source, const LoaderConfig& config, std::unique_ptr<compute::Feed> feed)
      : source_(source),
        config_(checked(source, config)),
        shape_(source.shape()),
        run_(run_of(shape_, config_)),
        batches_per_epoch_(source.samples() / (config_.batch_size * config_.ranks)),
        feed_(std::move(feed)),
        slots_(Loader::slots(config_)) {
    const std::int64_t runs = (config_.batch_size + run_ - 1) / run_;
    const std::int64_t most_parts = std::min<std::int64_t>(config_.workers, runs);
    part_rows_ = (runs + most_parts - 1) / most_parts * run_;
    parts_ = (config_.batch_size + part_rows_ - 1) / part_rows_;
    const std::int64_t part_bytes = part_rows_ * static_cast<std::int64_t>(shape_.bytes());
    parts_ahead_ = (bytes_ahead + part_bytes - 1) / part_bytes;
    try {
      for (int i = 0; i < config_.workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      end();
      throw;
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { end(); }

  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
  void start_epoch(std::int64_t epoch);
  void next(const compute::Tensor& batch);
  std::vector<std::int64_t> made_again(const SampleSource& source) const;
  LoaderTotals take_totals() {
    const std::scoped_lock held(mutex_);
    return std::exchange(totals_, {});
  }

 private:
  struct Slot {
    std::int64_t parts_done = 0;
    std::exception_ptr error;
  };
  struct Part {
    std::int64_t epoch, step;  // of the batch
    std::size_t slot;
    std::int64_t first_row, rows;
  };

  std::size_t slot_of(std::int64_t ticket) const { return static_cast<std::size_t>(ticket) % slots_.size(); }
  bool complete(std::int64_t ticket) const { return slots_[slot_of(ticket)].parts_done == parts_; }
  bool may_claim() const {
    return !paused_ && claimed_ / parts_ < reclaimed_ + static_cast<std::int64_t>(slots_.size());
  }
  void work();
  Part part(std::int64_t number) const;
  template <class Use>
  void for_each_run(const Part& part, const Use& use) const;
  void fill(const Part& part, const SampleSource& source, std::int64_t* batch,
            std::vector<std::int64_t>& scratch) const;
  void reclaim(std::int64_t end_ticket);
  void send_complete();
  void end();

  const SampleSource& source_;
  const LoaderConfig config_;
  const SampleShape shape_;
  const std::int64_t run_, batches_per_epoch_;
  std::int64_t part_rows_ = 0, parts_ = 0, parts_ahead_ = 0;
  const std::unique_ptr<compute::Feed> feed_;

  // The backend's thread alone.
  std::int64_t sent_ = 0, delivered_ = 0;
  std::optional<Part> last_;  // the whole batch that was delivered last

  std::mutex mutex_;  // of all below
  std::condition_variable work_there_, part_done_;
  std::vector<Slot> slots_;
  std::int64_t first_epoch_ = 0;  // of ticket 0; written by the backend's thread alone
  std::int64_t reclaimed_ = 0;
  std::int64_t claimed_ = 0, announced_ = 0;  // parts
  int filling_ = 0;
  bool paused_ = false, ended_ = false;
  LoaderTotals totals_;
  std::vector<std::thread> threads_;
};

void Loader::Workers::end() {
  {
    const std::scoped_lock held(mutex_);
    ended_ = true;
  }
  work_there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::Workers::work() {
  std::vector<std::int64_t> scratch(static_cast<std::size_t>(run_ * shape_.tokens()));
  std::vector<Part> ahead;
  std::unique_lock held(mutex_);
  for (;;) {
    work_there_.wait(held, [this] { return ended_ || may_claim(); });
    if (ended_) return;
    const Part mine = part(claimed_++);
    for (ahead.clear(); announced_ < claimed_ + parts_ahead_; ++announced_) ahead.push_back(part(announced_));
    ++filling_;
    held.unlock();
    const Clock::time_point start = Clock::now();
    std::exception_ptr error;
    try {
      for (const Part& later : ahead)
        for_each_run(later,
                     [&](std::int64_t, std::int64_t index, std::int64_t count) { source_.expect(index, count); });
      fill(mine, source_, static_cast<std::int64_t*>(feed_->host_buffer(mine.slot)), scratch);
    } catch (...) {
      error = std::current_exception();
    }
    const double read_ms = ms_since(start);
    held.lock();
    totals_.read_ms += read_ms;
    --filling_;
    Slot& slot = slots_[mine.slot];
    ++slot.parts_done;
    if (error && !slot.error) slot.error = error;
    part_done_.notify_one();  // the backend's thread, if it waits
  }
}

Loader::Workers::Part Loader::Workers::part(std::int64_t number) const {
  const std::int64_t ticket = number / parts_;
  const std::int64_t first_row = number % parts_ * part_rows_;
  return {first_epoch_ + ticket / batches_per_epoch_, ticket % batches_per_epoch_, slot_of(ticket), first_row,
          std::min(part_rows_, config_.batch_size - first_row)};
}

// Calls use(row, index, count) for each of its stretches of rows that are consecutive samples.
template <class Use>
void Loader::Workers::for_each_run(const Part& part, const Use& use) const {
  const EpochOrder order(source_.samples(), run_, config_.shuffle, config_.seed, part.epoch);
  const std::int64_t place =
      (part.step * config_.ranks + config_.rank) * config_.batch_size;  // of the batch's first row
  const std::int64_t end = part.first_row + part.rows;
  for (std::int64_t row = part.first_row; row < end;) {
    const std::int64_t index = order.index(place + row);
    const std::int64_t count = std::min(order.together(place + row), end - row);
    use(row, index, count);
    row += count;
  }
}

void Loader::Workers::fill(const Part& part, const SampleSource& source, std::int64_t* batch,
                           std::vector<std::int64_t>& scratch) const {
  for_each_run(part, [&](std::int64_t row, std::int64_t index, std::int64_t count) {
    const std::span samples = std::span(scratch).first(static_cast<std::size_t>(count * shape_.tokens()));
    source.read(index, samples);
    put_rows(samples.data(), count, row, config_.batch_size, shape_.sequence_length, batch);
  });
}

// The host buffers of tickets below `end_ticket` may be filled anew.
void Loader::Workers::reclaim(std::int64_t end_ticket) {
  for (std::int64_t ticket = reclaimed_; ticket < end_ticket; ++ticket) {
    feed_->reclaim(slot_of(ticket));
    const std::scoped_lock held(mutex_);
    slots_[slot_of(ticket)] = {};
    reclaimed_ = ticket + 1;
    work_there_.notify_all();
  }
}

// What lies complete in host memory goes to the device while the step before it computes.
void Loader::Workers::send_complete() {
  const auto sendable = [this] {
    const std::scoped_lock held(mutex_);
    return sent_ < reclaimed_ + static_cast<std::int64_t>(slots_.size()) && complete(sent_) &&
           !slots_[slot_of(sent_)].error;
  };
  while (sendable()) feed_->send(slot_of(sent_)), ++sent_;
}

void Loader::Workers::next(const compute::Tensor& batch) {
  const std::int64_t elements = Loader::batch_elements(shape_, config_.batch_size);
  if (batch.dtype != compute::DType::i64 || !batch.contiguous() || batch.elements() != elements)
    throw Error(ASSAY_INVALID_ARGUMENT, "loader: a batch is " + std::to_string(elements) +
                                            " contiguous int64 elements; the tensor has " +
                                            std::to_string(batch.elements()) + " of " + compute::name_of(batch.dtype));
  reclaim(delivered_);
  {
    std::unique_lock held(mutex_);
    const auto there = [this] { return complete(delivered_); };
    if (!there()) {
      const Clock::time_point start = Clock::now();
      part_done_.wait(held, there);
      totals_.wait_ms += ms_since(start);
    }
    if (const std::exception_ptr& error = slots_[slot_of(delivered_)].error) std::rethrow_exception(error);
    ++totals_.batches;
    totals_.bytes += static_cast<std::uint64_t>(config_.batch_size) * shape_.bytes();
  }
  send_complete();
  feed_->deliver(slot_of(delivered_), batch);
  last_ = part(delivered_ * parts_);
  last_->rows = config_.batch_size;
  ++delivered_;
}

std::vector<std::int64_t> Loader::Workers::made_again(const SampleSource& source) const {
  if (!last_) throw Error(ASSAY_INTERNAL, "loader: no batch has been delivered that could be made again");
  std::vector<std::int64_t> batch(static_cast<std::size_t>(Loader::batch_elements(shape_, config_.batch_size)));
  std::vector<std::int64_t> scratch(static_cast<std::size_t>(run_ * shape_.tokens()));
  fill(*last_, source, batch.data(), scratch);
  return batch;
}

void Loader::Workers::start_epoch(std::int64_t epoch) {
  if (epoch < 0)
    throw Error(ASSAY_INVALID_ARGUMENT, "loader: epoch is " + std::to_string(epoch) + "; expected at least 0");
  if (delivered_ % batches_per_epoch_ == 0 && first_epoch_ + delivered_ / batches_per_epoch_ == epoch) return;
  {
    std::unique_lock held(mutex_);
    paused_ = true;
    part_done_.wait(held, [this] { return filling_ == 0; });
  }
  reclaim(sent_);
  const std::scoped_lock held(mutex_);
  std::fill(slots_.begin(), slots_.end(), Slot{});
  first_epoch_ = epoch;
  sent_ = delivered_ = reclaimed_ = claimed_ = announced_ = 0;
  paused_ = false;
  work_there_.notify_all();
}

std::size_t Loader::device_bytes(const SampleShape& shape, const LoaderConfig& config) {
  return slots(config) * ((batch_bytes(shape, config.batch_size) + 255) / 256 * 256);
}

Loader::Loader(const SampleSource& source, const LoaderConfig& config, compute::Backend& backend, void* device_memory) {
  checked(source, config);  // before memory is taken by what was asked for
  workers_ = std::make_unique<Workers>(
      source, config, backend.open_feed(slots(config), batch_bytes(source.shape(), config.batch_size), device_memory));
}

Loader::Loader(const SampleSource& source, const LoaderConfig& config, std::unique_ptr<compute::Feed> feed)
    : workers_(std::make_unique<Workers>(source, config, std::move(feed))) {}

Loader::~Loader() = default;

std::int64_t Loader::batches_per_epoch() const { return workers_->batches_per_epoch(); }
void Loader::start_epoch(std::int64_t epoch) { workers_->start_epoch(epoch); }
void Loader::next(const compute::Tensor& batch) { workers_->next(batch); }
std::vector<std::int64_t> Loader::last_batch(const SampleSource& source) const { return workers_->made_again(source); }
LoaderTotals Loader::take_totals() { return workers_->take_totals(); }

}  // namespace assay::data
