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

void AuditedBackend::run_any(const AnyOperation& operation) {
  std::visit(
      [this](const auto* op) {
        bool complete = true;
        for_each_tensor(*op, [&](const char*, const auto& tensor) {
          constexpr bool optional = may_be_empty<std::remove_cvref_t<decltype(tensor)>>;
          complete = complete && (tensor || optional || tensor.elements() == 0) && !is_unbound(tensor);
        });
        if (!complete) return real().run(*op);  // which says what is missing
        try {
          execute(*op);
        } catch (const Error& e) {
          // What the audit reads before the operation may lie beyond a tensor that the operation refuses.
          if (e.status() == ASSAY_DEVICE_ERROR) real().run(*op);
          throw;
        }
      },
      operation);
}

// Not looked at: random numbers beyond their range, sums for the study of rounding, what optimizers do, which
// verification::OptimizerCheck looks at, and the account of steps, which the host compares with the steps.
void AuditedBackend::execute(const op::RandomNormal& op) { real().run(op); }
void AuditedBackend::execute(const op::OrderedSum& op) { real().run(op); }
void AuditedBackend::execute(const op::OrderedDot& op) { real().run(op); }
void AuditedBackend::execute(const op::Advance& op) { real().run(op); }
void AuditedBackend::execute(const op::AdamW& op) { real().run(op); }
void AuditedBackend::execute(const op::Sgd& op) { real().run(op); }
void AuditedBackend::execute(const op::MuonMomentum& op) { real().run(op); }
void AuditedBackend::execute(const op::NormalizeRows& op) { real().run(op); }
void AuditedBackend::execute(const op::MuonUpdate& op) { real().run(op); }
void AuditedBackend::execute(const op::UpdateLossScale& op) { real().run(op); }
void AuditedBackend::execute(const op::SpoilPlaces& op) { real().run(op); }
void AuditedBackend::execute(const op::MarkStep& op) { real().run(op); }

std::unique_ptr<Graph> AuditedBackend::capture(const std::function<void()>& enqueue) {
  judge_->capturing(true);
  std::unique_ptr<Graph> graph = real().capture(enqueue);
  judge_->capturing(false);
  return graph;
}

void AuditedBackend::execute(const op::Fill& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.x, 1)) return;
  const Values found = judge_->read(op.x, audit::some_segments(op.x, audit::room));
  for (std::size_t i = 0; i < found.size(); ++i)
    judge_->element(op.x, "x", static_cast<std::int64_t>(i), found[i], op.value, 0);
}

void AuditedBackend::execute(const op::Copy& op) {
  if (!judge_->begins(op.name, op.to, audit::elements_looked_at(op.to, 2))) return real().run(op);
  const Segments places = audit::some_segments(op.to, audit::room);
  const Values x = judge_->read(op.from, places);
  real().run(op);
  judge_->each(op.to, "to", places, [&](std::size_t i, std::int64_t, std::size_t) { return std::pair(x[i], 0.0); });
}

void AuditedBackend::execute(const op::RandomIntegers& op) {
  real().run(op);
  if (!judge_->begins(op.name, op.x, audit::elements_looked_at(op.x, 1))) return;
  __extension__ typedef unsigned __int128 Wide;
  const auto range = static_cast<std::uint64_t>(op.high) - static_cast<std::uint64_t>(op.low);
  judge_->each(op.x, "x", audit::some_segments(op.x, audit::room), [&](std::size_t, std::int64_t place, std::size_t) {
    const std::array<std::uint32_t, 4> word = audit::philox(op.seed, op.stream, static_cast<std::uint64_t>(place) / 2);
    const std::size_t first = place % 2 ? 2 : 0;
    const std::uint64_t bits = word[first] | std::uint64_t{word[first + 1]} << 32;
    const auto drawn = static_cast<std::int64_t>(static_cast<std::uint64_t>(op.low) +
                                                 static_cast<std::uint64_t>(Wide(bits) * range >> 64));
    return std::pair(static_cast<double>(drawn), 0.0);
  });
}

}  // namespace assay::compute
