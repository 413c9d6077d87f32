// A way to compute attention and its gradients, and the tensors that it needs beside its operands.
#pragma once
#include <assay/compute/backend.hpp>
#include <memory>

#include "problem.hpp"
#include "slot.hpp"

namespace attention {

// All [batch, heads, seq, head_dim], or, of values and results, value_dim. Contiguous; with projections and documents
// they lie token by token, as products write and read them: [batch, seq, heads, head_dim].
struct Operands {
  explicit Operands(const Problem& p);
  Slot q, k, v, out;
  Slot dout, dq, dk, dv;
};

// Where the documents of a problem begin; without any there are no tensors.
class DocumentSlots {
 public:
  explicit DocumentSlots(const Problem& p);
  Slots slots();
  void initialize(assay::compute::Backend&) const;
  assay::compute::PackedDocuments get() const;

 private:
  assay::models::DocumentPlaces places_;
  assay::models::DocumentSizes sizes_;
  Slot first_keys_, starts_;
};

class Algorithm {
 public:
  Algorithm() = default;
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;
  virtual ~Algorithm() = default;

  // Tensors in the order in which they are taken. One may be in `forward_only` and in `backward_only`.
  virtual Slots inputs() { return {}; }         // besides q, k, v: held from the start to the end
  virtual Slots forward_only() { return {}; }   // free again when the forward is done
  virtual Slots kept() { return {}; }           // from the forward to the backward
  virtual Slots backward_only() { return {}; }  // free again when the backward is done

  virtual void initialize(assay::compute::Backend&) const {}  // fills inputs()
  virtual void forward(assay::compute::Backend&) const = 0;
  virtual void backward(assay::compute::Backend&) const = 0;
};

// Adds to a backend's refusal of a shape, which names its limit, the setting that has none.
template <class Call>
void say_what_serves(Call call) {
  try {
    call();
  } catch (const assay::Error& e) {
    if (e.status() != ASSAY_UNSUPPORTED) throw;
    throw assay::Error(ASSAY_UNSUPPORTED, std::string(e.what()) + "; impl = \"naive\" serves every shape");
  }
}

// The operands must outlive it. `differentiable`: what the backward needs is kept by the forward.
std::unique_ptr<Algorithm> make_eager(const Problem& p, const Operands& operands, bool differentiable);
std::unique_ptr<Algorithm> make_fused(const Problem& p, const Operands& operands, bool differentiable);
std::unique_ptr<Algorithm> make_flash(const Problem& p, const Operands& operands, bool differentiable);

}  // namespace attention
