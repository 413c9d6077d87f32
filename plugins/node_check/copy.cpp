#include "copy.hpp"

#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/workload/open_backend.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

#include "integer_product.hpp"

namespace node_check {

namespace op = assay::compute::op;

using assay::compute::DType;
using assay::compute::Tensor;

namespace {

constexpr std::int64_t word_bytes = 8;
constexpr std::int64_t granule = 32;           // words: every piece begins at a multiple of 256 bytes
constexpr std::int64_t piece_words = 1 << 20;  // of what is on the host at once

// A pattern that no run before has had, but by chance.
std::uint64_t new_pattern(std::uint64_t seed) {
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return 1 + mixed(now ^ mixed(seed)) % static_cast<std::uint64_t>(largest_pattern);
}

std::string hexadecimal(std::uint64_t word) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(word));
  return text;
}

// f(piece of x, index of its first word)
template <class F>
void for_each_piece(const Tensor& x, const F& f) {
  for (std::int64_t first = 0; first < x.elements(); first += piece_words)
    f(x.slice(0, first, std::min(piece_words, x.elements() - first)), first);
}

}  // namespace

Copy::Copy(const assay::Host& host, const Settings& settings)
    : host_(host),
      settings_(settings),
      pattern_(settings.pattern != 0 ? settings.pattern : new_pattern(settings.seed)),
      third_(settings.bytes / word_bytes / 3 / granule * granule) {
  if (third_ == 0)
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "bytes = " + std::to_string(settings.bytes) +
                                                   " is too little to copy in parts; expected " +
                                                   std::to_string(3 * granule * word_bytes) + " at least");
}

assay::Work Copy::work() const {
  return {.bytes = static_cast<std::uint64_t>(2 * 3 * third_ * word_bytes * settings_.repeats)};
}

void Copy::setup(const Launch& launch) {
  launch.report(message_bytes_metric, 3 * third_ * word_bytes);
  pattern_ = assay::comm::exchange(host_, "node_check.pattern", pattern_)[0];  // one for all, so that a record names it
  backend_ = std::make_unique<assay::compute::CountedBackend>(assay::workload::open_backend(host_, launch));
  for (int i = 0; i < 2; ++i) {
    memory_[i] = assay::DeviceMemory(host_, ASSAY_MEMORY_DATA, static_cast<std::size_t>(3 * third_ * word_bytes),
                                     i == 0 ? "first buffer" : "second buffer");
    buffers_[i] = Tensor(memory_[i].data(), DType::i64, {3 * third_});
  }
  std::vector<std::uint64_t> host;
  for_each_piece(buffers_[0], [&](const Tensor& piece, std::int64_t first) {
    host.resize(static_cast<std::size_t>(piece.elements()));
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = word(first + static_cast<std::int64_t>(i), 0);
    backend_->upload(piece, host.data());
  });
  spoiled_.take_memory(host_, *backend_, {{"the copy", as_numbers(0).elements()}});
  backend_->begin_steps();
}

Tensor Copy::as_numbers(std::uint64_t buffer) const {
  return Tensor(buffers_[buffer].data, DType::f32, {2 * buffers_[buffer].elements()});
}

// The next copy writes over the older buffer: verify finds what is left of this, as it compares every word.
void Copy::open_account(const Launch&) { spoiled_.spoil(*backend_, {as_numbers((copies_ + 1) % 2)}); }

// A copy is two operations (enqueue_copy).
assay::Account Copy::account(const Launch&) {
  return {.steps = backend_->steps(2 * static_cast<std::uint64_t>(settings_.repeats))};
}

std::uint64_t Copy::word(std::int64_t index, std::uint64_t copies) const {
  std::int64_t origin = index + static_cast<std::int64_t>(copies % 3) * third_;
  if (origin >= 3 * third_) origin -= 3 * third_;
  return mixed((pattern_ << 32) + static_cast<std::uint64_t>(origin));
}

void Copy::enqueue_copy() {
  const Tensor& from = newest();
  const Tensor& to = buffers_[++copies_ % 2];
  backend_->run(op::Copy{.to = to.slice(0, 0, 2 * third_), .from = from.slice(0, third_, 2 * third_)});
  backend_->run(op::Copy{.to = to.slice(0, 2 * third_, third_), .from = from.slice(0, 0, third_)});
}

void Copy::run(const Launch& launch) {
  {
    const auto phase = launch.phase(copy_phase);
    for (std::int64_t i = 0; i < settings_.repeats; ++i) enqueue_copy();
  }
  if (settings_.fault != Fault::none && launch.iteration() == 0) spoil();
}

void Copy::spoil() const {
  const Tensor element = newest().slice(0, third_ + 7, 1);
  std::uint64_t value = 0;
  backend_->download(&value, element);
  value = settings_.fault == Fault::not_a_number ? ~std::uint64_t{0} : value ^ 1;
  backend_->upload(element, &value);
}

Findings Copy::compare(const Tensor& buffer, std::uint64_t copies) const {
  Findings found;
  std::vector<std::uint64_t> host;
  for_each_piece(buffer, [&](const Tensor& piece, std::int64_t first) {
    host.resize(static_cast<std::size_t>(piece.elements()));
    backend_->download(host.data(), piece);
    found.checked += piece.elements();
    for (std::size_t i = 0; i < host.size(); ++i) {
      const std::int64_t index = first + static_cast<std::int64_t>(i);
      const std::uint64_t expected = word(index, copies);
      if (host[i] == expected) continue;
      ++found.wrong;
      if (found.first.empty())
        found.first = "the word at byte " + std::to_string(index * word_bytes) + " is " + hexadecimal(host[i]) +
                      ", expected " + hexadecimal(expected);
    }
  });
  return found;
}

std::string Copy::verify(const Launch& launch) {
  Findings found = compare(newest(), copies_);
  found.add(compare(buffers_[(copies_ + 1) % 2], copies_ - 1));
  return verdict_of_ranks(host_, launch, found,
                          "words of 8 bytes after " + std::to_string(copies_) + " copies of " +
                              std::to_string(3 * third_ * word_bytes) +
                              " bytes, and before the last one (pattern = " + std::to_string(pattern_) + ")");
}

}  // namespace node_check
