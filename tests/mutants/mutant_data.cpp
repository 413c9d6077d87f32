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

void MutantBackend::copy(const Tensor& to, const Tensor& from) {
  const auto call = [&] { real().copy(to, from); };
  if (to.dtype == DType::f16 || from.dtype == DType::f16) return call();
  if (to.dim(0) > 1 && broken("copy.last_row_unwritten")) return keeping(tail(to, to.dim(0) - 1), call);
  call();
  if (from.dtype == DType::f32 && to.dtype == DType::bf16 && broken("copy.truncates")) {
    const Values<float> exact = floats(from);
    edit(to, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i)
        v[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(exact[i]) & 0xffff0000U);
    });
  }
}

void MutantBackend::random_integers(const Tensor& x, std::uint64_t seed, std::uint64_t stream, std::int64_t low,
                                    std::int64_t high) {
  real().random_integers(x, seed, stream, low, high);
  if (x.elements() % 2 != 0 || !broken("random_integers.same_on_all_ranks")) return;
  Values<std::int64_t> values = integers(x);
  for (std::int64_t i = 0; i < values.size() / 2; ++i) values[values.size() / 2 + i] = values[i];
  values.write();
}

void MutantBackend::sum(const Tensor& x, const Tensor& out, float factor) {
  const auto call = [&] { real().sum(x, out, factor); };
  broken("sum.last_missing") ? with_other<float>(x, clear_last, call) : call();
}

void MutantBackend::ordered_sum(const Tensor& x, const Tensor& out, const SumOptions& options) {
  using compute::SumOrder;
  SumOptions o = options;
  const auto call = [&] { real().ordered_sum(x, out, o); };
  if (x.elements() > 1 && broken("ordered_sum.other_order"))
    o.order = o.order == SumOrder::sequential ? SumOrder::pairwise : SumOrder::sequential;
  if (o.accumulator != DType::f32 && broken("ordered_sum.fp32_accumulator")) o.accumulator = DType::f32;
  if (x.dtype != DType::f16 && broken("ordered_sum.last_missing")) return with_other<float>(x, clear_last, call);
  call();
}

void MutantBackend::ordered_dot(const Tensor& x, const Tensor& y, const Tensor& out, const SumOptions& options) {
  const auto call = [&] { real().ordered_dot(x, y, out, options); };
  if (x.dtype != DType::f16 && broken("ordered_dot.last_missing")) return with_other<float>(x, clear_last, call);
  call();
}

}  // namespace assay::mutants
