#include "settings.hpp"

#include <string>

namespace moe {

assay::models::ExpertsConfig experts_config(const assay::Case& c) {
  const auto integer = [&](const char* name) { return c.get<std::int64_t>(name); };
  const auto real = [&](const char* name) { return c.get<double>(name); };
  assay::models::ExpertsConfig e;
  e.count = integer("experts");
  e.per_token = integer("experts_per_token");
  e.d_ff = integer("expert_d_ff");
  e.shared_d_ff = integer("shared_d_ff");
  e.first_dense_layers = integer("first_dense_layers");
  e.rule = {.score = c.choice("score", scores),
            .normalized = c.get<bool>("normalized_weights"),
            .factor = static_cast<float>(real("weights_factor"))};
  e.unit = {.alpha = static_cast<float>(real("unit_alpha")),
            .limit = static_cast<float>(real("unit_limit")),
            .offset = static_cast<float>(real("unit_offset"))};
  e.biases = c.get<bool>("expert_biases");
  e.choice_bias = c.get<bool>("choice_bias");
  e.balance_coefficient = real("balance_coefficient");
  e.z_coefficient = real("z_coefficient");
  e.routing = c.choice("routing", routings);
  e.zipf_exponent = real("zipf_exponent");
  e.capacity_factor = real("capacity_factor");
  if (c.get<bool>("expert_parallel")) e.rank = c.rank(), e.ranks = c.rank_count();
  return e;
}

Settings::Settings(const assay::Case& c) : collectives(c) {
  if (c.rank_count() > 1 && !c.get<bool>("expert_parallel"))
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "several ranks share the experts of one model; set expert_parallel = true, or run.ranks = 1");
  bucket_bytes = static_cast<std::size_t>(c.get<double>("bucket_mb") * 0x1p20);
  pass = c.choice("pass", passes);
  dump_file = c.get<std::string>("dump");
  if (c.rank_count() > 1 && (pass != Pass::train_step || !dump_file.empty()))
    throw assay::Error(
        ASSAY_INVALID_ARGUMENT,
        "experts over several ranks are only trained; expected pass = \"train_step\", and dump left out");
  assay::models::DecoderConfig& model = trainer.model;
  model = assay::models::decoder_config(c, "model", presets);
  model.experts = experts_config(c);
  model.fused = assay::workload::is_graph(c);
  model.keep_logits = !dump_file.empty();
  model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  assay::models::require_fused(model, "keep_outputs", model.keep_outputs);
  assay::models::require_fused(model, "residual_add = \"product\"", model.residual_in_products);
  assay::models::validate_decoder(c, model, "model");
  trainer.optimizer = assay::train::optimizer_config(c, assay::train::WholeMatrixOptimizers::served);
  trainer.seed = c.seed();
  trainer.train_step = pass == Pass::train_step;
  left_multiprocessors = assay::models::read_update(c, trainer);
  if (trainer.update_beside_backward && c.rank_count() > 1)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "update = \"beside_backward\" is of one rank: gradients of several are added up first; expected "
                       "run.ranks = 1, or update = \"after_backward\"");
  // Several micro-batches add them up, and ranks are compared by them.
  trainer.drops_expert_gradients = trainer.update_in_products && c.rank_count() == 1 && model.accumulation_steps == 1;
  trainer.data_rank = c.rank();
  trainer.data_ranks = c.rank_count();
  trainer.weights_file = c.get<std::string>("weights");
  trainer.inputs_file = c.get<std::string>("inputs");
}

}  // namespace moe
