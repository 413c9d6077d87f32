// The decoder workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <assay/models/update_params.hpp>
#include <assay/train/optimizer_params.hpp>
#include <assay/workload/execution.hpp>
#include <assay/workload/precision.hpp>
#include <cstdint>
#include <string>

namespace decoder {

enum class Pass { forward, forward_backward, train_step };

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;
  Pass pass = Pass::forward_backward;
  std::int32_t left_multiprocessors = 0;
  std::string dump_file;  // "": none
};

inline constexpr auto passes = assay::choices<Pass>(
    {{"forward", Pass::forward}, {"forward_backward", Pass::forward_backward}, {"train_step", Pass::train_step}});

// Of AdamW: in the format that the precision says for the optimizer's state, or in bf16.
enum class Moments { as_precision, bf16 };
inline constexpr auto moments =
    assay::choices<Moments>({{"as_precision", Moments::as_precision}, {"bf16", Moments::bf16}});

using assay::Param;
inline constexpr auto params = assay::join(
    assay::models::model_params,
    assay::table(
        Param::choice("pass", Pass::forward_backward, passes).help("what a step does; train_step adds the optimizer"),
        Param::choice("precision", "fp32", assay::workload::precision_names_with_fp8)
            .help("bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all bf16; tf32, "
                  "fp16: cuda; fp8: as bf16, the blocks' products in 8 bits, or but for weights' gradients "
                  "(fp8_dw_bf16): "
                  "graph"),
        Param::choice("execution", assay::workload::Execution::graph, assay::workload::executions)
            .help("eager: one operation at a time, unfused; graph: fused operations, captured as one graph on CUDA")),
    assay::models::attention_params, assay::train::optimizer_params, assay::models::checkpointing_params,
    assay::models::accumulation_params,
    assay::table(
        Param::choice("moments", Moments::as_precision, moments)
            .help("format of AdamW's moments; bf16: half the memory of fp32 ones, rounded to nearest at each step")),
    assay::models::update_params,
    assay::table(
        Param::boolean("side_lane", false)
            .help("graph on cuda: gradients by weights on a second stream, beside the gradients by activations"),
        Param::input_path("weights").help(
            "safetensors file to start from, or the index of several; empty: random weights from the seed"),
        Param::input_path("inputs").help(
            "safetensors file with input_ids and labels, int64 [batch, context]; empty: random"),
        Param::output_path("dump").help(
            "safetensors file for logits, loss, gradients and weights after the last step")));

}  // namespace decoder
