#include "assay/models/decoder_dump.hpp"

#include <assay/train/safetensors.hpp>
#include <assay/workload/host_copies.hpp>
#include <vector>

namespace assay::models {

using compute::DType;
using compute::Tensor;

void dump_step(const DecoderTrainer& trainer, const std::string& path) {
  train::SafetensorsWriter file(path);
  compute::Backend& backend = trainer.backend();
  const train::ParameterSet& parameters = trainer.parameters();
  const auto& all = parameters.all();
  const DecoderConfig& m = trainer.config().model;
  file.declare("logits", DType::f32, {m.batch_size, m.context_length, m.vocab_size});
  if (m.backward) {
    file.declare("loss", DType::f32, {});
    for (const auto& p : all) file.declare("grad." + p.name, DType::f32, p.dims);
  }
  for (const auto& p : all) file.declare("weight." + p.name, DType::f32, p.dims);

  const auto write = [&](const std::string& name, const Tensor& t, double divisor = 1.0) {
    std::vector<float> values = workload::download_f32(backend, t);
    if (divisor != 1.0)
      for (float& v : values) v = static_cast<float>(v / divisor);
    file.write(name, values.data(), values.size() * sizeof(float));
  };
  write("logits", trainer.model().kept_logits());
  if (m.backward) {
    write("loss", trainer.model().loss());
    const double scale = trainer.scaler().scale_of_gradients(backend);
    for (std::size_t i = 0; i < all.size(); ++i) write("grad." + all[i].name, parameters.gradient(i), scale);
  }
  for (std::size_t i = 0; i < all.size(); ++i) write("weight." + all[i].name, parameters.value(i));
  file.finish();
}

}  // namespace assay::models
