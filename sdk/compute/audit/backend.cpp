// The audited backend itself, and operations that move or make data.
#include <algorithm>
#include <cmath>

#include "judge.hpp"
#include "masks.hpp"

namespace assay::compute {

using audit::Segments;
using audit::Values;

AuditedBackend::AuditedBackend(Backend& real, ProductMath math, const AuditLimits& limits)
    : ForwardingBackend(real), judge_(std::make_unique<Judge>(real, limits)), math_(math) {}
AuditedBackend::~AuditedBackend() = default;

std::string AuditedBackend::text() const { return judge_->text(); }
bool AuditedBackend::looked_at_all() const { return judge_->looked_at_all(); }

void AuditedBackend::set_mode(Mode mode) {
  judge_->set_mode(mode);
  real().set_mode(mode);
}

std::unique_ptr<Graph> AuditedBackend::capture(const std::function<void()>& enqueue) {
  judge_->capturing(true);
  std::unique_ptr<Graph> graph = real().capture(enqueue);
  judge_->capturing(false);
  return graph;
}

void AuditedBackend::fill(const Tensor& x, double value) {
  real().fill(x, value);
  if (!judge_->begins("fill", x, 1)) return;
  const Values found = judge_->read(x, audit::some_segments(x, audit::room));
  for (std::size_t i = 0; i < found.size(); ++i)
    judge_->element(x, "x", static_cast<std::int64_t>(i), found[i], value, 0);
}

void AuditedBackend::copy(const Tensor& to, const Tensor& from) {
  if (!judge_->begins("copy", to, audit::elements_looked_at(to, 2))) return real().copy(to, from);
  const Segments places = audit::some_segments(to, audit::room);
  const Values x = judge_->read(from, places);
  real().copy(to, from);
  judge_->each(to, "to", places, [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(x[i], 0.0); });
}

void AuditedBackend::random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                                     std::int64_t high) {
  real().random_integers(x, seed, stream, low, high);
  if (!judge_->begins("random_integers", x, audit::elements_looked_at(x, 1))) return;
  __extension__ typedef unsigned __int128 Wide;
  const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  judge_->each(x, "x", audit::some_segments(x, audit::room), [&](std::size_t, std::int64_t place, std::size_t) {
    const std::array<std::uint32_t, 4> word = audit::philox(seed, stream, static_cast<std::uint64_t>(place) / 2);
    const std::size_t first = place % 2 ? 2 : 0;
    const std::uint64_t bits = word[first] | std::uint64_t{word[first + 1]} << 32;
    const auto drawn = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                                 static_cast<std::uint64_t>(Wide(bits) * range >> 64));
    return std::pair(static_cast<double>(drawn), 0.0);
  });
}

}  // namespace assay::compute
