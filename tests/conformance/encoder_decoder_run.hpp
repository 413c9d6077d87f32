// An encoder-decoder with all its memory on the backend under test, for its tests.
#pragma once
#include <assay/models/encoder_decoder.hpp>
#include <assay/train/checkpoint.hpp>
#include <assay/train/optimizer.hpp>
#include <assay/workload/host_copies.hpp>
#include <cstring>
#include <map>

#include "harness.hpp"
#include "support/reference.hpp"

namespace assay::conformance {

// The shape of the reference, whose arena has gaps between its groups.
inline models::EncoderDecoderConfig reference_shape() {
  models::EncoderDecoderConfig c;
  c.vocab_size = 31, c.batch_size = 3, c.sequence_length = 7;
  c.d_model = 16, c.heads = 2, c.d_ff = 24, c.encoder_layers = 2, c.decoder_layers = 2;
  c.dropout = 0.0F;
  c.keep_logits = true;
  return c;
}

// A shape without gaps, where gradients come into places that have held activations.
inline models::EncoderDecoderConfig dense_shape() {
  models::EncoderDecoderConfig c;
  c.vocab_size = 192, c.batch_size = 4, c.sequence_length = 24;
  c.d_model = 64, c.heads = 2, c.d_ff = 128, c.encoder_layers = 2, c.decoder_layers = 3;
  c.dropout = 0.1F, c.dropout_seed = 5;
  c.keep_logits = true;
  return c;
}

class EncoderDecoderRun {
 public:
  using Results = std::map<std::string, Values>;

  explicit EncoderDecoderRun(const models::EncoderDecoderConfig& config)
      : config_(config),
        set_(config.precision),
        ids_(models::add_encoder_decoder_parameters(set_, config)),
        model_(config, set_, ids_),
        optimizer_({.lr = 1e-2, .eps = 1e-4F}, set_),
        scaler_(config.precision),
        values_(set_.value_bytes()),
        copy_(set_.copy_bytes() + 256),
        state_(optimizer_.state_bytes()),
        scaler_state_(scaler_.state_bytes() + 256),
        gradients_(set_.gradient_bytes()),
        activations_(model_.activation_bytes()),
        batch_(DType::i64, {config.batch_elements()}) {
    set_.bind(values_.data(), copy_.data(), gradients_.data());
    optimizer_.bind(state_.data());
    scaler_.bind(scaler_state_.data());
    model_.bind(gradients_.data(), activations_.data());
    model_.set_loss_scale(scaler_.tensors().scale);
    model_.set_dropout_step(optimizer_.step_number());
    backend().set_product_math(config.precision.product_math);
    optimizer_.reset(backend());
    scaler_.reset(backend(), 1024);
    set_.initialize(backend(), 1);
    batch_.write(random_ids(config.batch_elements(), 7, 0, config.vocab_size));
  }
  ~EncoderDecoderRun() { backend().set_product_math(compute::ProductMath::exact); }
  EncoderDecoderRun(const EncoderDecoderRun&) = delete;
  EncoderDecoderRun& operator=(const EncoderDecoderRun&) = delete;

  void load_reference() {
    const std::string folder = test::reference_folder("encoder_decoder");
    train::load_parameters(backend(), set_, train::SafetensorsReader(folder + "weights.safetensors"));
    const train::SafetensorsReader inputs(folder + "inputs.safetensors");
    const auto read = [&](const char* name) {
      const auto bytes = inputs.read(name);
      std::vector<std::int64_t> tokens(bytes.size() / 8);
      std::memcpy(tokens.data(), bytes.data(), bytes.size());
      return tokens;
    };
    const std::vector<std::int64_t> source = read("source"), target = read("target");
    std::vector<std::int64_t> batch = source;
    for (const std::int64_t shift : {0, 1})
      for (std::int64_t s = 0; s < config_.batch_size; ++s) {
        const auto first = target.begin() + s * config_.sequence_length + shift;
        batch.insert(batch.end(), first, first + config_.target_length());
      }
    backend().upload(batch_, batch.data());
  }

  void forward() const { model_.forward(backend(), batch_); }
  void forward_backward(train::GradientListener* listener = nullptr) const {
    forward();
    model_.backward(backend(), batch_, listener);
  }
  void step() const {
    forward_backward();
    optimizer_.step(backend(), scaler_);
  }
  void set_step(std::int64_t step) const {
    backend().run(op::Fill{.x = optimizer_.step_number(), .value = static_cast<double>(step)});
  }
  void set(const std::string& parameter, double value) const {
    for (std::size_t i = 0; i < set_.all().size(); ++i)
      if (set_.all()[i].name == parameter) backend().run(op::Fill{.x = set_.value(i), .value = value});
    set_.refresh_compute_copy(backend());
  }

  static Values read(const Tensor& t, double scale = 1.0) {
    const std::vector<float> v = workload::download_f32(backend(), t);
    Values out(v.begin(), v.end());
    for (double& x : out) x /= scale;
    return out;
  }
  double loss() const { return read(model_.loss())[0]; }
  // A saved tensor of the plan, after forward.
  Values saved(const std::string& name) const {
    for (const auto& buffer : model_.plan().buffers())
      if (buffer.name == name) return read(buffer.tensor);
    ADD_FAILURE() << "the plan has no buffer " << name;
    return {};
  }
  Results gradients() const {
    Results out;
    for (std::size_t i = 0; i < set_.all().size(); ++i)
      out["grad." + set_.all()[i].name] = read(set_.gradient(i), scaler_.scale_of_gradients(backend()));
    return out;
  }
  Results results() const {
    Results out = gradients();
    out["logits"] = read(model_.kept_logits());
    out["loss"] = read(model_.loss());
    for (std::size_t i = 0; i < set_.all().size(); ++i) out["weight." + set_.all()[i].name] = read(set_.value(i));
    return out;
  }
  const train::ParameterSet& parameters() const { return set_; }
  const models::EncoderDecoderModel& model() const { return model_; }

 private:
  models::EncoderDecoderConfig config_;
  train::ParameterSet set_;
  models::EncoderDecoderParameters ids_;
  models::EncoderDecoderModel model_;
  train::Optimizer optimizer_;
  train::LossScaler scaler_;
  Buffer values_, copy_, state_, scaler_state_, gradients_, activations_;
  DeviceTensor batch_;
};

// The largest relative difference, in the Euclidean norm, of any tensor.
inline double worst_difference(const EncoderDecoderRun::Results& got, const EncoderDecoderRun::Results& expected) {
  EXPECT_FALSE(expected.empty()) << "nothing to compare with";
  double worst = 0;
  for (const auto& [name, reference] : expected) {
    const Values& values = got.at(name);
    EXPECT_EQ(values.size(), reference.size()) << name;
    if (values.size() != reference.size()) continue;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      difference += (values[i] - reference[i]) * (values[i] - reference[i]);
      norm += reference[i] * reference[i];
    }
    const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    EXPECT_TRUE(std::isfinite(error)) << name;
    worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace assay::conformance
