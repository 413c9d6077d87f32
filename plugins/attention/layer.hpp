// What a step computes: attention alone, or with the products before and after it that make it a layer.
#pragma once
#include <cstdint>
#include <memory>

#include "algorithm.hpp"
#include "settings.hpp"

namespace attention {

class Layer {
 public:
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  // Tensors in the order in which they are taken. One may be in `forward_only` and in `backward_only`.
  virtual Slots model() { return {}; }  // weights: held from the start to the end
  virtual Slots inputs() = 0;           // held from the start to the end
  virtual Slots forward_only() = 0;     // free again when the forward is done
  virtual Slots kept() = 0;             // from the forward to the backward
  virtual Slots results() = 0;          // of the forward: held from then on
  virtual Slot& result_gradient() = 0;  // what the backward starts from
  virtual Slots gradients() = 0;        // results of the backward
  virtual Slots backward_only() = 0;    // free again when the backward is done

  virtual void initialize_model(assay::compute::Backend&, std::uint64_t) const {}
  virtual void initialize_inputs(assay::compute::Backend&, std::uint64_t seed) const = 0;
  virtual void forward(assay::compute::Backend&) const = 0;
  virtual void backward(assay::compute::Backend&) const = 0;

  // The row of result_gradient(), as a matrix, that has the gradient of one query of one head.
  virtual std::int64_t row_of(std::int64_t head_index, std::int64_t query) const = 0;
  // What each product by a weight is off by, measured by its row, by name; none without projections. Of the forward's
  // products, or of the backward's. Blocks.
  struct ProductError {
    const char* name;
    double error;
  };
  virtual std::vector<ProductError> forward_errors(assay::compute::Backend&) const { return {}; }
  virtual std::vector<ProductError> backward_errors(assay::compute::Backend&) const { return {}; }
};

enum Stream : std::uint64_t { q_stream, k_stream, v_stream, result_gradient_stream, x_stream, first_weight_stream };

// The operands and the settings must outlive it.
std::unique_ptr<Layer> make_layer(const Settings& settings, Operands& operands);
std::unique_ptr<Layer> make_projected(const Settings& settings, Operands& operands,
                                      std::unique_ptr<Algorithm> algorithm, bool differentiable);

}  // namespace attention
