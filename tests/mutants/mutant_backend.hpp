// A compute backend that wraps a real one and breaks the operation that the living mutant names. While kernels are
// being prepared nothing is broken: tensors may not be touched then.
#pragma once
#include <assay/compute/forwarding_backend.hpp>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "switchboard.hpp"
#include "values.hpp"

namespace assay::mutants {

namespace op = compute::op;

inline constexpr float too_large = 1.01F;  // a factor: by 1%

using compute::Activation;
using compute::AdamWOptions;
using compute::AttentionShape;
using compute::Backend;
using compute::Dropout;
using compute::Mode;
using compute::SumOptions;
using compute::Tensor;

class MutantBackend final : public compute::ForwardingBackend {
 public:
  explicit MutantBackend(std::unique_ptr<Backend> real) : ForwardingBackend(*real), owned_(std::move(real)) {}

  void set_mode(Mode mode) override {
    mode_ = mode;
    real().set_mode(mode);
  }

  void leave_multiprocessors(std::int32_t count) override {
    left_multiprocessors_ = count;
    real().leave_multiprocessors(count);
  }
  // What runs on the side lane is an update beside backward.
  void begin_side() override { is_side_ = true, real().begin_side(); }
  void end_side() override { is_side_ = false, real().end_side(); }

  // mutant_data.cpp
  std::unique_ptr<compute::Feed> open_feed(std::size_t, std::size_t, void*) override;
  void run_any(const compute::AnyOperation& operation) override {
    std::visit([this](const auto* op) { execute(*op); }, operation);
  }

 private:
  // Each carries an operation out, broken where the living mutant says so: mutant_data.cpp, mutant_operations.cpp,
  // mutant_norms.cpp, mutant_attention.cpp, mutant_experts.cpp, mutant_optimizers.cpp.
#define ASSAY_DECLARE_EXECUTE(Name) void execute(const op::Name& op);
  ASSAY_OPERATIONS(ASSAY_DECLARE_EXECUTE)
#undef ASSAY_DECLARE_EXECUTE

  // To be asked last: an answer counts as the mutant's having been reached.
  bool broken(MutantId mutant) const { return mode_ == Mode::execute && breaks(mutant); }
  // The same where another operation is asked for: while preparing, too, since a GPU carries out what it has prepared.
  bool asks_otherwise(MutantId mutant) const { return executes() ? breaks(mutant) : lives(mutant); }
  bool executes() const { return mode_ == Mode::execute; }

  Values<float> floats(const Tensor& t) const { return Values<float>(real(), t); }
  Values<std::int64_t> integers(const Tensor& t) const { return Values<std::int64_t>(real(), t); }

  template <class F>
  void edit(const Tensor& t, F&& change) const {
    Values<float> values = floats(t);
    change(values);
    values.write();
  }
  // The call with other numbers in `input`, which has its own again afterwards. No output may share its memory.
  template <class Number, class F, class G>
  void with_other(const Tensor& input, F&& change, G&& call) const {
    Values<Number> own(real(), input);
    Values<Number> other = own;
    change(other);
    other.write();
    call();
    own.write();
  }
  // The call, which leaves `part` of what it writes as it was.
  template <class Number = float, class G>
  void keeping(const Tensor& part, G&& call) const {
    Values<Number> before(real(), part);
    call();
    before.write();
  }
  // Whether an operation that asks has left its result there before.
  bool is_written_again(const Tensor& result) { return executes() && !written_.insert(result.data).second; }
  void update_next_copy();                                          // mutant_optimizers.cpp: after one on the side lane
  void scaled(const op::Matmul& op) const;                          // mutant_operations.cpp
  void break_eight_bits(const op::EightBitRows& eight_bits) const;  // mutant_data.cpp: those of another operation
  void swap_rows_and_columns(const Tensor& square) const;           // mutant_data.cpp: of 8 bits
  // mutant_attention.cpp: what the operations of the loss share.
  template <class G>
  void with_broken_labels(const Tensor& labels, std::int64_t words, G&& call) const;
  void break_last_loss(const Tensor& losses) const;
  void break_last_gradient(const Tensor& dlogits) const;
  // The call with half the probability, or with the mask of step 0, if the living mutant wants that.
  template <class G>
  void with_broken_dropout(const Dropout& dropout, G&& call) const;

  std::unique_ptr<Backend> owned_;
  Mode mode_ = Mode::execute;
  bool is_side_ = false;
  std::int32_t left_multiprocessors_ = 0;
  std::vector<op::AdamW> side_updates_, side_updates_before_;  // of this step so far, and of the one before it
  std::map<void*, Values<float>> gradients_before_;            // by address: what the optimizer was given last
  std::map<void*, Values<std::int32_t>> counts_before_;        // by address: of groups of rows
  std::set<void*> written_;                                    // addresses, see is_written_again
  bool attends_backward_ = false;  // an attention was, so that what it leaves is not the end of a step
};

// with_broken_dropout stands here since three files use it.
template <class G>
void MutantBackend::with_broken_dropout(const Dropout& dropout, G&& call) const {
  if (dropout.probability == 0) return call(dropout);
  Dropout changed = dropout;
  if (asks_otherwise("dropout.half_probability")) changed.probability *= 0.5F;
  if (dropout.step && broken("dropout.same_mask_each_step"))
    return with_other<std::int64_t>(
        dropout.step, [](auto& step) { step[0] = 0; }, [&] { call(changed); });
  call(changed);
}

inline Tensor last_row(const Tensor& t) {  // of the last two dimensions
  const int dimension = t.rank >= 2 ? t.rank - 2 : 0;
  return t.slice(dimension, t.dim(dimension) - 1, 1);
}
// The entries of the first dimension before or from `at` on.
inline Tensor head(const Tensor& t, std::int64_t at) { return t ? t.slice(0, 0, at) : t; }
inline Tensor tail(const Tensor& t, std::int64_t at) { return t ? t.slice(0, at, t.dim(0) - at) : t; }

}  // namespace assay::mutants
