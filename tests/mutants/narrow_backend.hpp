// A compute backend that has bf16 and fp16 whatever the real one has: a CPU has no fp16, and many have no bf16. An
// operation is carried out in fp32 on wider copies of its tensors, and what it has written is rounded. So does a GPU,
// whose sums and functions are fp32 too. It also scales losses, which the CPU refuses to. For small models alone.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "values.hpp"

namespace assay::mutants {

namespace op = compute::op;

class NarrowBackend final : public compute::ForwardingBackend {
  using Tensor = compute::Tensor;

 public:
  explicit NarrowBackend(std::unique_ptr<compute::Backend> real) : ForwardingBackend(*real), owned_(std::move(real)) {}

  void set_mode(compute::Mode mode) override {
    mode_ = mode;
    real().set_mode(mode);
  }

  void run_any(const compute::AnyOperation& operation) override {
    compute::visit_operation(
        operation,
        [&](const op::Matmul& op) {
          const bool measures_rate = is_narrow(op.a) && op.c.elements() > most_elements;
          if (!measures_rate) widened(op);
        },
        [&](op::CrossEntropyBackward op) { unscaled(op); }, [&](op::CrossEntropyInPlace op) { unscaled(op); },
        [&](const op::Advance& op) {
          if (number(op.loss_scale.nonfinite, 0) == 0) real().run(op::Advance{.step = op.step});
        },
        [&](const op::AdamW& op) { update(op); }, [&](const op::UpdateLossScale& op) { update_scale(op); },
        // What is quantised is the result as its type rounds it.
        [&](const op::RmsNormForward& op) { eight_bits_apart(op, op.x, &op::RmsNormForward::y); },
        [&](const op::AddRmsNormForward& op) { eight_bits_apart(op, op.x, &op::AddRmsNormForward::y); },
        [&](const op::SwigluForward& op) { eight_bits_apart(op, op.gate, &op::SwigluForward::h); },
        [&](const op::RmsNormBackward& op) { eight_bits_apart(op, op.x, &op::RmsNormBackward::dx); },
        [&](const op::SwigluBackward& op) { halves_in_eight_bits(op); },
        // These serve 16 bits on every device.
        [&](const op::Sgd& op) { real().run(op); }, [&](const op::MuonMomentum& op) { real().run(op); },
        [&](const op::NormalizeRows& op) { real().run(op); }, [&](const op::MuonUpdate& op) { real().run(op); },
        [&](const op::OrderedSum& op) { real().run(op); }, [&](const op::OrderedDot& op) { real().run(op); },
        [&](const op::SpoilPlaces& op) { real().run(op); }, [&](const op::MarkStep& op) { real().run(op); },
        [&](const auto& op) { widened(op); });
  }

 private:
  static constexpr std::int64_t most_elements = std::int64_t{1} << 20;

  static bool is_narrow(const Tensor& t) {
    return (t.dtype == compute::DType::f16 || t.dtype == compute::DType::bf16) && t.elements() > 0;
  }
  bool executes() const { return mode_ == compute::Mode::execute; }
  // Of a tensor of one element, if there is one.
  float number(const Tensor& t, float otherwise) const {
    return t && executes() ? Values<float>(real(), t)[0] : otherwise;
  }

  // A tensor of 16 bits and its wider copy.
  class Wide {
   public:
    Wide(compute::Backend& backend, const Tensor& narrow, bool has_numbers) : backend_(backend), narrow_(narrow) {
      numbers_.resize(static_cast<std::size_t>(narrow.elements()));
      if (!has_numbers) return;
      Values<float> values(backend, narrow);
      numbers_.assign(values.begin(), values.end());
      before_ = numbers_;
    }
    bool is_of(const Tensor& t) const {
      return t.data == narrow_.data && t.shape == narrow_.shape && t.stride == narrow_.stride;
    }
    Tensor tensor() {
      Tensor t = narrow_;
      t.data = numbers_.data();
      t.dtype = compute::DType::f32;
      std::int64_t step = 1;
      for (int i = t.rank - 1; i >= 0; --i) {
        t.stride[static_cast<std::size_t>(i)] = step;
        step *= t.dim(i);
      }
      return t;
    }
    // Only what has been written: another tensor of the operation may lie around an input.
    void narrow() const {
      if (std::memcmp(numbers_.data(), before_.data(), numbers_.size() * sizeof(float)) == 0) return;
      Values<float> values(backend_, narrow_);
      std::copy(numbers_.begin(), numbers_.end(), values.begin());
      values.write();
    }

   private:
    compute::Backend& backend_;
    Tensor narrow_;
    std::vector<float> numbers_, before_;
  };

  // Carries out in fp32. Tensors that are one tensor stay one.
  template <class Op>
  void widened(Op op) {
    std::list<Wide> all;
    compute::for_each_tensor(op, [&](const char*, Tensor& t) {
      if (!is_narrow(t)) return;
      for (Wide& w : all)
        if (w.is_of(t)) return void(t = w.tensor());
      t = all.emplace_back(real(), t, executes()).tensor();
    });
    real().run(op);
    if (!executes() || all.empty()) return;
    real().synchronize();
    for (const Wide& w : all) w.narrow();
  }
  // Of a result like `x`.
  template <class Op, class Field>
  void eight_bits_apart(Op op, const Tensor& x, Field result) {
    const op::EightBitRows eight_bits = std::exchange(op.eight_bits, {});
    const std::int64_t columns = x.dim(-1), rows = x.elements() / columns;
    Tensor rounded((op.*result).data, x.dtype, {rows, columns});
    std::vector<float> instead;  // as large as any type needs
    if (!(op.*result)) {
      instead.resize(static_cast<std::size_t>(x.elements()));
      rounded.data = instead.data();
      op.*result = rounded;
    }
    widened(op);
    if (eight_bits)
      widened(op::QuantizeRows{.x = rounded, .y = eight_bits.numbers, .inverse_scale = eight_bits.inverse_scale});
    if (executes() && !instead.empty()) real().synchronize();
  }
  // Of the buffer whose halves are the results.
  void halves_in_eight_bits(op::SwigluBackward op) {
    const op::EightBitRows eight_bits = std::exchange(op.eight_bits, {});
    const std::int64_t columns = op.gate.dim(-1), rows = op.gate.elements() / columns;
    Tensor both(op.dgate.data, op.gate.dtype, {rows, 2 * columns});
    std::vector<float> instead;
    if (!op.dgate) {
      instead.resize(static_cast<std::size_t>(both.elements()));
      both.data = instead.data();
      op.dgate = both.slice(1, 0, columns), op.dup = both.slice(1, columns, columns);
    }
    widened(op);
    if (eight_bits)
      widened(op::QuantizeRows{.x = both, .y = eight_bits.numbers, .inverse_scale = eight_bits.inverse_scale});
    if (executes() && !instead.empty()) real().synchronize();
  }
  template <class Op>
  void unscaled(Op op) {
    op.scale *= number(op.loss_scale, 1);
    op.loss_scale = {};
    widened(op);
  }
  void update(op::AdamW op) {
    const compute::LossScale loss_scale = op.loss_scale;
    op.loss_scale = {};
    if (op.gradient.dtype == compute::DType::bf16 || !loss_scale.scale) return real().run(op);
    if (number(loss_scale.nonfinite, 0) > 0) return;
    std::vector<float> unscaled(static_cast<std::size_t>(op.gradient.elements()));
    if (executes()) {
      const Values<float> scaled(real(), op.gradient);
      const float by = number(loss_scale.scale, 1);
      for (std::int64_t i = 0; i < scaled.size(); ++i) unscaled[static_cast<std::size_t>(i)] = scaled[i] / by;
    }
    op.gradient.data = unscaled.data();
    op.gradient.dtype = compute::DType::f32;
    const Tensor copy = op.compute_copy;
    op.compute_copy = {};
    real().run(op);
    if (executes()) real().synchronize();  // before the copy of the gradient goes
    if (copy) widened(op::Copy{.to = copy, .from = op.parameter});
  }
  void update_scale(const op::UpdateLossScale& op) const {
    if (!executes()) return;
    Values<float> scale(real(), op.scale);
    Values<std::int64_t> good(real(), op.good_steps), skipped(real(), op.skipped_steps);
    if (number(op.nonfinite, 0) > 0) {
      scale[0] *= op.options.backoff, ++skipped[0], good[0] = 0;
    } else if (++good[0] == op.options.growth_interval) {
      scale[0] *= op.options.growth, good[0] = 0;
    }
    scale.write(), good.write(), skipped.write();
  }

  std::unique_ptr<compute::Backend> owned_;
  compute::Mode mode_ = compute::Mode::execute;
};

}  // namespace assay::mutants
