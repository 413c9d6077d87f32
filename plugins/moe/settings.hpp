// The moe workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <assay/models/update_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/optimizer_params.hpp>
#include <assay/workload/execution.hpp>
#include <assay/workload/precision.hpp>
#include <cstdint>
#include <string>

#include "presets.hpp"

namespace moe {

enum class Pass { forward_backward, train_step };

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;
  Pass pass = Pass::train_step;
  std::int32_t left_multiprocessors = 0;
  std::string dump_file;  // "": none
  assay::parallel::CollectiveSettings collectives;
  std::size_t bucket_bytes = 0;
};

inline constexpr auto passes =
    assay::choices<Pass>({{"forward_backward", Pass::forward_backward}, {"train_step", Pass::train_step}});
inline constexpr auto routings = assay::choices<assay::models::Routing>({{"learned", assay::models::Routing::learned},
                                                                         {"balanced", assay::models::Routing::balanced},
                                                                         {"zipf", assay::models::Routing::zipf}});
inline constexpr auto scores = assay::choices<assay::compute::ExpertScore>(
    {{"softmax", assay::compute::ExpertScore::softmax}, {"sigmoid", assay::compute::ExpertScore::sigmoid}});

using assay::Param;
inline constexpr double largest = assay::workload::largest_fp32;
inline constexpr auto expert_params = assay::table(
    Param::integer("experts", 8).at_least(1).at_most(1 << 16).help("in each layer that has them"),
    Param::integer("experts_per_token", 2).at_least(1).at_most(1 << 10).help("experts that a token goes to"),
    Param::integer("expert_d_ff", 64).at_least(1).at_most(1 << 22).help("hidden states of one expert"),
    Param::integer("shared_d_ff", 0)
        .at_least(0)
        .at_most(1 << 22)
        .help("hidden states of a SwiGLU for every token; 0: none"),
    Param::integer("first_dense_layers", 0)
        .at_least(0)
        .at_most(4096)
        .help("layers at the beginning that have a dense feed-forward of d_ff in place of experts"),
    Param::choice("score", assay::compute::ExpertScore::softmax, scores)
        .help("what an expert's score is: softmax over all, or the sigmoid of the expert's logit"),
    Param::boolean("normalized_weights", true).help("the weights of a token's experts add up to weights_factor"),
    Param::real("weights_factor", 1)
        .at_least(-largest)
        .at_most(largest)
        .help("what the weights of a token's experts are multiplied by"),
    Param::boolean("expert_biases", false).help("the router and the experts' products add a bias"),
    Param::boolean("choice_bias", false)
        .help("a bias of each expert, for the choice alone; it is not trained and stays 0"),
    Param::real("unit_alpha", 1)
        .at_least(-largest)
        .at_most(largest)
        .help("the gated unit is g sigmoid(alpha g) (u + offset)"),
    Param::real("unit_limit", 0)
        .at_least(0)
        .at_most(largest)
        .help("g is at most the limit, u within it; 0: there is none"),
    Param::real("unit_offset", 0).at_least(-largest).at_most(largest).help("what is added to u in the gated unit"),
    Param::real("balance_coefficient", 0)
        .at_least(0)
        .at_most(largest)
        .help("of the load-balancing loss in each layer's gradients; the reported loss excludes it"),
    Param::real("z_coefficient", 0)
        .at_least(0)
        .at_most(largest)
        .help("of the router's z loss, likewise; of softmax scores"),
    Param::choice("routing", assay::models::Routing::learned, routings)
        .help(
            "who chooses a token's experts: the router; or a table drawn from the seed, of equal counts, or of counts "
            "by Zipf's law"),
    Param::real("zipf_exponent", 1)
        .at_least(0)
        .at_most(16)
        .help("routing = \"zipf\": expert e of 1, 2, ... is drawn with a weight of e^-zipf_exponent"));

// These parameters serve cases of several ranks.
inline constexpr auto rank_params = assay::join(
    assay::table(Param::boolean("expert_parallel", false)
                     .help("several ranks train one model: each has its part of the experts and its own batch, tokens "
                           "go to the experts' ranks, and gradients of what all ranks have are summed"),
                 Param::real("capacity_factor", 2)
                     .at_least(1)
                     .at_most(1 << 16)
                     .help("expert_parallel: rows for which a rank has room, in those of balanced routing; a case "
                           "fails where more would come")),
    assay::parallel::collective_params, assay::parallel::bucket_params);

inline constexpr auto params = assay::join(
    assay::table(
        Param::choice("model", "tiny", model_names)
            .help("what it stands for (dimensions, experts, ...) can be overridden one by one"),
        Param::input_path(assay::models::of_config_file)
            .help("in place of model: config.json of a published Qwen3, Mixtral, gpt-oss or DeepSeek-V2 model with "
                  "experts; what it says can be overridden one by one")),
    assay::models::presets_dimensions,
    assay::models::batch_params("sequences in a step, or a micro-batch of it, on each rank"),
    assay::models::sequence_params, expert_params, rank_params,
    assay::table(
        Param::choice("pass", Pass::train_step, passes).help("what a step does; train_step adds the optimizer"),
        Param::choice("precision", "fp32", assay::workload::precision_names)
            .help("bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all bf16; tf32, "
                  "fp16: cuda"),
        Param::choice("execution", assay::workload::Execution::graph, assay::workload::executions)
            .help("eager: one operation at a time, unfused; graph: fused operations, captured as one graph on CUDA")),
    assay::models::attention_params, assay::train::optimizer_params, assay::models::checkpointing_params,
    assay::models::accumulation_params, assay::models::update_params,
    assay::table(
        Param::input_path("weights").help("safetensors file to start from; empty: random weights from the seed"),
        Param::input_path("inputs").help(
            "safetensors file with input_ids and labels, int64 [batch, context]; empty: random"),
        Param::output_path("dump").help(
            "safetensors file for logits, loss, gradients and weights after the last step")));

// Reads the case's parameters of experts.
assay::models::ExpertsConfig experts_config(const assay::Case& c);

}  // namespace moe
