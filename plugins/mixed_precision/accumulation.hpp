// The workload mixed_precision:accumulation: one sum, dot product or all-reduce on the device, in a stated format and
// order, against its exact value.
#pragma once
#include <assay/plugin.hpp>

#include <assay/compute/counted_backend.hpp>
#include <assay/compute/workspace.hpp>
#include <assay/workload/spoiled_results.hpp>

#include <memory>
#include <string>
#include <vector>

#include "formats.hpp"

namespace mixed_precision {

using assay::Param;
using assay::compute::DType;

enum class Operation { sum, dot, matmul, all_reduce };
inline constexpr auto operations = assay::choices<Operation>({{"sum", Operation::sum},
                                                              {"dot", Operation::dot},
                                                              {"matmul", Operation::matmul},
                                                              {"all_reduce", Operation::all_reduce}});
struct TermFormat {
  DType dtype;
  bool is_tf32 = false;  // fp32; a product reads fewer of its bits
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

class Accumulation {
 public:
  static constexpr auto id = "accumulation";
  static constexpr auto summary =
      "a sum, dot product or all-reduce in a stated format and order, against its exact value";
  static constexpr auto item_unit = "terms";
  static constexpr auto params = accumulation_params;
  static constexpr auto result_metric = assay::Metric::per_case("result").help("what the device computed");
  static constexpr auto exact_stored_metric =
      assay::Metric::per_case("exact_stored").help("the exact result of the terms as stored, rounded once");
  static constexpr auto exact_real_metric =
      assay::Metric::per_case("exact_real").help("the exact result of the terms before they were stored");
  static constexpr auto error_ulp_metric =
      assay::Metric::per_case("error_ulp")
          .unit("ulp")
          .help("result less exact_stored, in units of the last place of the accumulator's format there");
  static constexpr auto rounding_error_metric =
      assay::Metric::per_case("rounding_error").unit("%").help("result against exact_stored: what adding lost");
  static constexpr auto total_error_metric =
      assay::Metric::per_case("total_error").unit("%").help("result against exact_real: what storing and adding lost");
  static constexpr auto ring_spread_metric =
      assay::Metric::per_case("ring_spread")
          .unit("ulp")
          .help("ring: between the largest and the smallest result over the ranks that a ring may start from");
  static constexpr auto metrics = assay::table(result_metric, exact_stored_metric, exact_real_metric, error_ulp_metric,
                                               rounding_error_metric, total_error_metric, ring_spread_metric);
  using Launch = assay::LaunchOf<Accumulation>;

  explicit Accumulation(const assay::Case& c);  // throws INVALID_ARGUMENT for what does not go together
  void setup(const Launch& launch);
  void run(const Launch&) { enqueue(); }
  void finish(const Launch& launch);
  void open_account(const Launch&) { spoiled_.spoil(*backend_, {results_}); }
  assay::Account account(const Launch& launch);
  std::string verify(const Launch& launch);
  assay::Work work() const;

 private:
  void check() const;
  bool of_products() const { return operation_ == Operation::dot || operation_ == Operation::matmul; }
  bool of_ranks() const { return operation_ == Operation::all_reduce; }
  std::int64_t first_of(std::int64_t rank) const { return terms_ * rank / ranks_; }

  void take_memory();
  void make_terms();
  void enqueue() const;
  void enqueue_sum() const;
  void enqueue_ranks() const;

  double exact(const std::vector<double>& terms) const;
  float expected() const;  // the operation must return this, to the bit; not for matmul
  void check_product(double result) const;
  void check_sum(double result, double should_be) const;
  float download_result() const;

  assay::Host host_;
  std::uint64_t seed_;
  Operation operation_;
  Order order_;
  Data data_;
  bool tf32_;
  assay::compute::DType terms_dtype_, stored_;
  bool stores_ = false;  // a finished sum in `stored_`
  assay::compute::SumOptions options_;
  std::int64_t terms_, ranks_;
  double term_;

  std::unique_ptr<assay::compute::CountedBackend> backend_;
  assay::DeviceMemory data_memory_;
  assay::compute::Workspace workspace_;
  // fp32 [n]: a scratch for what is converted; then the terms; the chunks' or the ranks' sums, those stored, those in
  // the order of a ring; the result of each ring; the product's result.
  assay::compute::Tensor scratch_, x_, partials_, stored_partials_, rotated_, results_, product_;
  assay::workload::SpoiledResults spoiled_;
  std::vector<double> real_;    // the terms before they were stored
  std::vector<float> on_host_;  // as stored
};

}  // namespace mixed_precision
