// What moves, makes and adds up data, broken.
#include <algorithm>
#include <optional>

#include "mutant_backend.hpp"

namespace assay::mutants {

using compute::DType;

namespace {

// Batches that come twice, or late. The first one is always right.
class MutantFeed final : public compute::Feed {
 public:
  MutantFeed(std::unique_ptr<compute::Feed> real, Backend& backend) : real_(std::move(real)), backend_(backend) {}

  void* host_buffer(std::size_t slot) const override { return real_->host_buffer(slot); }
  void send(std::size_t slot) override { real_->send(slot); }
  void reclaim(std::size_t slot) override { real_->reclaim(slot); }
  void deliver(std::size_t slot, const Tensor& to) override {
    real_->deliver(slot, to);
    Values<std::int64_t> batch(backend_, to);
    if (const Values<std::int64_t> right = batch; before_) {
      const bool again = ++delivered_ % 2 == 1 && breaks("feed.batch_twice");
      const bool late = breaks("feed.one_late");
      if (again || late) std::copy_n(&(*before_)[0], batch.size(), batch.begin()), batch.write();
      before_ = right;
    } else {
      before_.emplace(right);
    }
  }

 private:
  std::unique_ptr<compute::Feed> real_;
  Backend& backend_;
  std::optional<Values<std::int64_t>> before_;
  int delivered_ = 0;
};

// The last term becomes 0, where a 0 changes the sum.
void clear_last(Values<float>& values) { values[values.size() - 1] = 0; }

}  // namespace

std::unique_ptr<compute::Feed> MutantBackend::open_feed(std::size_t slots, std::size_t bytes_per_slot,
                                                        void* device_memory) {
  return std::make_unique<MutantFeed>(real().open_feed(slots, bytes_per_slot, device_memory), real());
}

// No mutant breaks these: what they come to shows in no result, or is the same as another one's.
void MutantBackend::execute(const op::Fill& op) { real().run(op); }
void MutantBackend::execute(const op::RandomNormal& op) { real().run(op); }
void MutantBackend::execute(const op::SumOfSquares& op) { real().run(op); }
void MutantBackend::execute(const op::MaxAbs& op) { real().run(op); }
// No workload has one scale for a whole tensor.
void MutantBackend::execute(const op::Quantize& op) { real().run(op); }

void MutantBackend::execute(const op::QuantizeRows& op) {
  const auto call = [&] { real().run(op); };
  if (op.y.dim(0) > 1 && broken("quantize_rows.last_row_unwritten")) return keeping<std::uint8_t>(last_row(op.y), call);
  call();
  if (op.y.dim(0) > 1 && broken("quantize_rows.one_scale_for_all"))
    edit(op.inverse_scale, [](auto& v) { std::fill(v.begin(), v.end(), v[0]); });
}

void MutantBackend::execute(const op::QuantizeColumns& op) {
  const auto call = [&] { real().run(op); };
  if (op.x.dim(0) > 1 && broken("quantize_columns.last_row_left_out"))
    return with_other<float>(
        op.x,
        [](auto& v) {
          for (std::int64_t c = 1; c <= v.columns(); ++c) v[v.size() - c] = 0;
        },
        call);
  call();
  if (op.y.dim(0) == op.y.dim(1) && op.y.dim(0) > 1 && broken("quantize_columns.not_transposed"))
    swap_rows_and_columns(op.y);
}

// Of a square of 8 bits.
void MutantBackend::swap_rows_and_columns(const Tensor& square) const {
  Values<std::uint8_t> y(real(), square);
  for (std::int64_t i = 0; i < y.columns(); ++i)
    for (std::int64_t j = 0; j < i; ++j) std::swap(y[i * y.columns() + j], y[j * y.columns() + i]);
  y.write();
}

void MutantBackend::execute(const op::TransposeEightBits& op) {
  const auto call = [&] { real().run(op); };
  if (op.scale && op.x.dim(0) > 1 && broken("transpose_eight_bits.shares_ignored"))
    return with_other<float>(
        op.scale, [](auto& v) { std::fill(v.begin(), v.end(), v[0]); },
        [&] {
          with_other<float>(
              op.other_scale, [](auto& v) { std::fill(v.begin(), v.end(), v[0]); }, call);
        });
  call();
  const std::int64_t rows = op.x.dim(0), places = op.y.dim(1);
  if (rows > 1 && broken("transpose_eight_bits.last_row_left_out")) {
    Values<std::uint8_t> y(real(), op.y);
    for (std::int64_t c = 0; c < op.y.dim(0); ++c) y[c * places + rows - 1] = 0;
    y.write();
  }
  if (op.y.dim(0) == rows && rows == places && rows > 1 && broken("transpose_eight_bits.not_transposed"))
    swap_rows_and_columns(op.y);
}

void MutantBackend::break_eight_bits(const op::EightBitRows& eight_bits) const {
  if (eight_bits && broken("eight_bits.last_scale_halved"))
    edit(eight_bits.inverse_scale, [](auto& v) { v[v.size() - 1] /= 2; });
}

void MutantBackend::execute(const op::Copy& op) {
  const auto call = [&] { real().run(op); };
  if (op.to.dtype == DType::f16 || op.from.dtype == DType::f16) return call();
  if (op.to.dim(0) > 1 && broken("copy.last_row_unwritten")) return keeping(tail(op.to, op.to.dim(0) - 1), call);
  call();
  if (op.from.dtype == DType::f32 && op.to.dtype == DType::bf16 && broken("copy.truncates")) {
    const Values<float> exact = floats(op.from);
    edit(op.to, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i)
        v[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact[i]) & 0xffff0000U);
    });
  }
}

void MutantBackend::execute(const op::RandomIntegers& op) {
  real().run(op);
  if (op.x.elements() % 2 != 0 || !broken("random_integers.same_on_all_ranks")) return;
  Values<std::int64_t> values = integers(op.x);
  for (std::int64_t i = 0; i < values.size() / 2; ++i) values[values.size() / 2 + i] = values[i];
  values.write();
}

void MutantBackend::execute(const op::Sum& op) {
  const auto call = [&] { real().run(op); };
  broken("sum.last_missing") ? with_other<float>(op.x, clear_last, call) : call();
}

void MutantBackend::execute(const op::OrderedSum& op) {
  using compute::SumOrder;
  if (is_written_again(op.out) && broken("ordered_sum.once")) return;
  op::OrderedSum changed = op;
  SumOptions& o = changed.options;
  const auto call = [&] { real().run(changed); };
  if (op.x.elements() > 1 && broken("ordered_sum.other_order"))
    o.order = o.order == SumOrder::sequential ? SumOrder::pairwise : SumOrder::sequential;
  if (o.accumulator != DType::f32 && broken("ordered_sum.fp32_accumulator")) o.accumulator = DType::f32;
  if (op.x.dtype != DType::f16 && broken("ordered_sum.last_missing")) return with_other<float>(op.x, clear_last, call);
  call();
}

void MutantBackend::execute(const op::OrderedDot& op) {
  if (is_written_again(op.out) && broken("ordered_dot.once")) return;
  const auto call = [&] { real().run(op); };
  if (op.x.dtype != DType::f16 && broken("ordered_dot.last_missing")) return with_other<float>(op.x, clear_last, call);
  call();
}

}  // namespace assay::mutants
