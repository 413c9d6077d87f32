// The parameter table: a part for each study. A parameter of another study than the case's must keep its default.
#pragma once
#include <assay/train/decoder_params.hpp>

#include "study.hpp"
#include "toy_model.hpp"

namespace mixed_precision {

using assay::Param;

using assay::compute::DType;

enum class StudyKind { accumulation, dtypes, speed_accuracy };
inline constexpr auto studies = assay::choices<StudyKind>({{"accumulation", StudyKind::accumulation},
                                                           {"dtypes", StudyKind::dtypes},
                                                           {"speed_accuracy", StudyKind::speed_accuracy}});
enum class Operation { sum, dot, matmul, all_reduce };
inline constexpr auto operations = assay::choices<Operation>({{"sum", Operation::sum},
                                                              {"dot", Operation::dot},
                                                              {"matmul", Operation::matmul},
                                                              {"all_reduce", Operation::all_reduce}});
struct TermFormat {
  DType dtype;
  bool is_tf32 = false;  // fp32, of which a product reads less
  friend constexpr bool operator==(const TermFormat&, const TermFormat&) = default;
};
inline constexpr auto term_formats = assay::choices<TermFormat>(
    {{"fp32", {DType::f32}}, {"tf32", {DType::f32, true}}, {"bf16", {DType::bf16}}, {"fp16", {DType::f16}}});
inline constexpr auto accumulators =
    assay::choices<DType>({{"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}});
// The order of a sum, and those that only another operation has.
enum class Order { sequential, chunked, pairwise, compensated, cascade, ring, tree, library };
inline constexpr auto orders = assay::choices<Order>({{"sequential", Order::sequential},
                                                      {"chunked", Order::chunked},
                                                      {"pairwise", Order::pairwise},
                                                      {"compensated", Order::compensated},
                                                      {"cascade", Order::cascade},
                                                      {"ring", Order::ring},
                                                      {"tree", Order::tree},
                                                      {"library", Order::library}});
// A finished sum is stored in this format; in none where it stays as the accumulator has it.
inline constexpr auto stored_formats = assay::choices<StoredAs>(
    {{"accumulator", std::nullopt}, {"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}});
enum class Data { constant, one_first, normal };
inline constexpr auto data_kinds =
    assay::choices<Data>({{"constant", Data::constant}, {"one_first", Data::one_first}, {"normal", Data::normal}});
inline constexpr auto castings =
    assay::choices<Casting>({{"policy", Casting::policy}, {"autocast", Casting::autocast}});

inline constexpr auto study_params =
    assay::table(Param::choice("study", StudyKind::accumulation, studies)
                     .help("accumulation: one sum; dtypes: a toy model's tensors; speed_accuracy: training a decoder"));

inline constexpr auto accumulation_params = assay::table(
    Param::choice("operation", Operation::sum, operations)
        .help("dot: of two vectors; matmul: the same as a product [1, n] [n, 1]; all_reduce: partial sums over ranks"),
    Param::choice("terms_dtype", TermFormat{DType::f32}, term_formats)
        .help("what the terms are stored in; tf32: of matmul"),
    Param::choice("accumulator", DType::f32, accumulators)
        .help("what partial results are rounded to; of all_reduce what travels between ranks, of matmul the result"),
    Param::choice("order", Order::sequential, orders)
        .help(
            "of sum and dot the first five, of all_reduce ring or tree, of matmul library; cascade: as torch.sum on a "
            "CPU"),
    Param::integer("chunk", 64).at_least(1).at_most(1 << 24).unit("terms").help("of order chunked"),
    Param::integer("lanes", 8)
        .at_least(1)
        .at_most(assay::compute::Cascade::most_lanes)
        .unit("terms")
        .help("of order cascade: terms of a vector; torch.sum of fp32 has 8"),
    Param::boolean("upcast", false).help("a term is converted to the accumulator's format before it is added"),
    Param::choice("stored", std::nullopt, stored_formats)
        .help("what a finished sum is stored in, of each chunk when chunked; of sum"),
    Param::integer("terms", 1000).at_least(1).at_most(1 << 24).help("number of terms"),
    Param::real("term", 0.01).help("a term's value; with data = normal the standard deviation"),
    Param::choice("data", Data::constant, data_kinds)
        .help("constant: every term the same; one_first: the first is 1; normal: random, mean 0"),
    Param::integer("simulated_ranks", 8).at_least(1).at_most(4096).help("of all_reduce, in equal parts of the terms"));

// The studies dtypes and speed_accuracy have these.
inline constexpr auto precision_params =
    assay::table(Param::choice("precision", "fp32", assay::train::precision_names)
                     .help("bf16: fp32 weights and state, bf16 gradients, activations and products; bf16_pure: all "
                           "bf16; tf32, fp16: cuda"));

inline constexpr auto dtypes_params = assay::table(
    Param::choice("casting", Casting::policy, castings)
        .help("of bf16 and fp16; policy: as assay trains; autocast: as PyTorch's autocast does, layer norm in fp32, "
              "gradients by parameters rounded to 16 bits and widened to fp32"));

inline constexpr auto speed_accuracy_params = assay::train::join(
    assay::train::model_params, assay::train::attention_params, assay::train::optimizer_params,
    assay::train::checkpointing_params,
    assay::table(Param::choice("execution", assay::train::Execution::graph, assay::train::executions)
                     .help("eager: one operation at a time, unfused; graph: fused, captured as one graph on CUDA"),
                 Param::integer("loss_steps", 20)
                     .at_least(1)
                     .at_most(1 << 20)
                     .unit("steps")
                     .help("updates before the loss that is compared"),
                 Param::choice("reference", Reference::fp64, references)
                     .help("of the gradients: fp64 on the host, of one sequence; or fp32 on the device"),
                 Param::integer("reference_context", 64)
                     .at_least(1)
                     .at_most(1 << 20)
                     .unit("tokens")
                     .help("tokens of the sequence whose gradients are compared; at most context_length")));

inline constexpr auto presets = [] {
  auto of_size = assay::train::model_presets;
  for (assay::Preset& preset : of_size) preset = preset.and_when("study", "speed_accuracy");
  return of_size;
}();

inline constexpr auto params =
    assay::train::join(study_params, accumulation_params, precision_params, dtypes_params, speed_accuracy_params);

// Throws INVALID_ARGUMENT when a parameter that `study` does not look at is not its default: whoever set it takes it to
// do something.
void refuse_parameters_of_others(const assay::Case& c, StudyKind study);

}  // namespace mixed_precision
