#include "accumulation.hpp"

#include <algorithm>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/open_backend.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

#include "rounding.hpp"

namespace mixed_precision {

namespace op = assay::compute::op;

using assay::Error;
using assay::compute::DType;
using assay::compute::SumOptions;
using assay::compute::SumOrder;
using assay::compute::Tensor;
using assay::workload::number;

namespace {

constexpr std::uint64_t terms_stream = 1;

SumOrder order_of(Order order) {
  switch (order) {
    case Order::chunked: return SumOrder::chunked;
    case Order::pairwise: return SumOrder::pairwise;
    case Order::compensated: return SumOrder::compensated;
    case Order::cascade: return SumOrder::cascade;
    default: return SumOrder::sequential;  // and what other operations add before they come to their own order
  }
}

[[noreturn]] void refuse(const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); }

}  // namespace

Accumulation::Accumulation(const assay::Case& c)
    : host_(c.host()),
      seed_(c.seed()),
      operation_(c.choice("operation", operations)),
      order_(c.choice("order", orders)),
      data_(c.choice("data", data_kinds)),
      tf32_(c.choice("terms_dtype", term_formats).is_tf32),
      terms_dtype_(c.choice("terms_dtype", term_formats).dtype),
      stored_(c.choice("stored", stored_formats).value_or(DType::f32)),
      stores_(c.choice("stored", stored_formats).has_value()),
      terms_(c.get<std::int64_t>("terms")),
      ranks_(c.get<std::int64_t>("simulated_ranks")),
      term_(c.get<double>("term")) {
  options_ = {.accumulator = c.choice("accumulator", accumulators),
              .order = order_of(order_),
              .chunk = c.get<std::int64_t>("chunk"),
              .upcast_terms = c.get<bool>("upcast"),
              .lanes = c.get<std::int64_t>("lanes")};
  check();
}

void Accumulation::check() const {
  const auto one_of = [&](std::initializer_list<Order> possible, const char* text) {
    if (std::find(possible.begin(), possible.end(), order_) == possible.end())
      refuse(std::string("order \"") + orders.name_of(order_) + "\" is none of operation \"" +
             operations.name_of(operation_) + "\"; set " + text);
  };
  if (of_ranks())
    one_of({Order::ring, Order::tree}, "ring or tree");
  else if (operation_ == Operation::matmul)
    one_of({Order::library}, "library: the device's library decides");
  else
    one_of({Order::sequential, Order::chunked, Order::pairwise, Order::compensated, Order::cascade},
           "sequential, chunked, pairwise, compensated or cascade");
  if (tf32_ && operation_ != Operation::matmul)
    refuse("terms_dtype \"tf32\" is how a matrix product reads fp32; set operation = \"matmul\", or \"fp32\"");
  if (operation_ == Operation::matmul && options_.accumulator != DType::f32 && options_.accumulator != terms_dtype_)
    refuse("a matmul's result is fp32 or of the format of its terms; set accumulator to one of them");
  if (options_.upcast_terms && (operation_ == Operation::matmul || of_ranks()))
    refuse("upcast is of operation \"sum\" or \"dot\"; leave it out");
  if (stores_ && operation_ != Operation::sum) refuse("stored is of operation \"sum\"; leave it out");
  if (of_ranks() && terms_ < ranks_)
    refuse("terms = " + std::to_string(terms_) + " are fewer than simulated_ranks = " + std::to_string(ranks_) +
           "; a rank needs one at least");
}

assay::Work Accumulation::work() const {
  const auto n = static_cast<std::uint64_t>(terms_);
  return {.flops = of_products() ? 2 * n : n, .bytes = n * assay::compute::size_of(terms_dtype_), .items = 0};
}

void Accumulation::setup(const Launch& launch) {
  backend_ = std::make_unique<assay::compute::CountedBackend>(assay::workload::open_backend(host_, launch));
  if (tf32_) backend_->set_product_math(assay::compute::ProductMath::tf32);
  take_memory();
  workspace_.prepare(host_, *backend_, [this] {
    backend_->run(op::RandomNormal{.x = scratch_, .seed = seed_, .stream = terms_stream, .mean = 0.0F, .std = 1.0F});
    backend_->run(op::Copy{.to = x_, .from = scratch_});
    enqueue();
  });
  make_terms();
  // A sum that overflows both ways is no number, as a spoiled one is. Of a tree's results the first alone is written.
  const bool is_number = operation_ == Operation::matmul || !std::isnan(expected());
  spoiled_.take_memory(host_, *backend_,
                       {{"the result", !is_number              ? 0
                                       : order_ == Order::tree ? 1
                                                               : results_.elements()}});
  backend_->begin_steps();
  workspace_.prepare(host_, *backend_, [this] { enqueue(); });
}

// Each step writes the same sums: the operations count it, and none may leave what was spoiled before the first.
assay::Account Accumulation::account(const Launch&) {
  (void)spoiled_.read(*backend_, {results_});
  return {.steps = backend_->steps(backend_->prepared())};
}

void Accumulation::take_memory() {
  const std::int64_t chunks = (terms_ + options_.chunk - 1) / options_.chunk;
  const std::int64_t parts = of_ranks() ? ranks_ : stores_ && options_.order == SumOrder::chunked ? chunks : 1;
  struct Wanted {
    Tensor* tensor;
    DType dtype;
    std::int64_t elements;
  };
  const Wanted all[] = {{&scratch_, DType::f32, terms_},     {&x_, terms_dtype_, terms_},
                        {&partials_, DType::f32, parts},     {&stored_partials_, stored_, parts},
                        {&rotated_, DType::f32, parts},      {&results_, DType::f32, of_ranks() ? ranks_ : 1},
                        {&product_, options_.accumulator, 1}};
  constexpr std::size_t alignment = 256;
  const auto bytes_of = [](const Wanted& w) {
    const std::size_t bytes = static_cast<std::size_t>(w.elements) * assay::compute::size_of(w.dtype);
    return (bytes + alignment - 1) / alignment * alignment;
  };
  std::size_t total = 0;
  for (const Wanted& w : all) total += bytes_of(w);
  data_memory_ = assay::DeviceMemory(host_, ASSAY_MEMORY_DATA, total, "terms and sums");
  char* at = data_memory_.data<char>();
  for (const Wanted& w : all) {
    *w.tensor = Tensor(at, w.dtype, {w.elements});
    at += bytes_of(w);
  }
}

void Accumulation::make_terms() {
  const auto n = static_cast<std::size_t>(terms_);
  if (data_ == Data::normal) {
    backend_->run(op::RandomNormal{
        .x = scratch_, .seed = seed_, .stream = terms_stream, .mean = 0.0F, .std = static_cast<float>(term_)});
    const std::vector<float> made = assay::workload::download_f32(*backend_, scratch_);
    real_.assign(made.begin(), made.end());
  } else {
    real_.assign(n, term_);
    if (data_ == Data::one_first) real_[0] = 1.0;
    std::vector<float> rounded(n);
    std::transform(real_.begin(), real_.end(), rounded.begin(), [](double v) { return static_cast<float>(v); });
    backend_->upload(scratch_, rounded.data());
  }
  backend_->run(op::Copy{.to = x_, .from = scratch_});
  on_host_ = assay::workload::download_f32(*backend_, x_);
}

void Accumulation::enqueue() const {
  if (operation_ == Operation::sum) return enqueue_sum();
  if (operation_ == Operation::dot)
    return backend_->run(op::OrderedDot{.x = x_, .y = x_, .out = results_, .options = options_});
  if (of_ranks()) return enqueue_ranks();
  backend_->run(op::Matmul{.a = x_.view({1, terms_}), .b = x_.view({terms_, 1}), .c = product_.view({1, 1})});
  backend_->run(op::Copy{.to = results_, .from = product_});
}

void Accumulation::enqueue_sum() const {
  if (!stores_) return backend_->run(op::OrderedSum{.x = x_, .out = results_, .options = options_});
  const SumOptions in_turn{.accumulator = options_.accumulator, .upcast_terms = options_.upcast_terms};
  if (options_.order != SumOrder::chunked) {
    backend_->run(op::OrderedSum{.x = x_, .out = partials_, .options = options_});
    backend_->run(op::Copy{.to = stored_partials_, .from = partials_});
    return backend_->run(op::Copy{.to = results_, .from = stored_partials_});
  }
  for (std::int64_t i = 0; i < partials_.elements(); ++i) {
    const std::int64_t begin = i * options_.chunk;
    backend_->run(op::OrderedSum{.x = x_.slice(0, begin, std::min(options_.chunk, terms_ - begin)),
                                 .out = partials_.slice(0, i, 1),
                                 .options = in_turn});
  }
  backend_->run(op::Copy{.to = stored_partials_, .from = partials_});
  backend_->run(op::OrderedSum{.x = stored_partials_, .out = results_, .options = in_turn});
}

// Each rank adds its own terms in fp32. What goes from rank to rank has the accumulator's format, the ranks' own sums
// too: as they lie in the buffer that is reduced. A ring adds a piece of the buffer in the order of the ranks, each
// piece from another rank on.
void Accumulation::enqueue_ranks() const {
  for (std::int64_t r = 0; r < ranks_; ++r)
    backend_->run(op::OrderedSum{
        .x = x_.slice(0, first_of(r), first_of(r + 1) - first_of(r)), .out = partials_.slice(0, r, 1), .options = {}});
  if (order_ == Order::tree)
    return backend_->run(op::OrderedSum{
        .x = partials_,
        .out = results_.slice(0, 0, 1),
        .options = {.accumulator = options_.accumulator, .order = SumOrder::pairwise, .upcast_terms = true}});
  for (std::int64_t first = 0; first < ranks_; ++first) {
    backend_->run(
        op::Copy{.to = rotated_.slice(0, 0, ranks_ - first), .from = partials_.slice(0, first, ranks_ - first)});
    if (first > 0)
      backend_->run(op::Copy{.to = rotated_.slice(0, ranks_ - first, first), .from = partials_.slice(0, 0, first)});
    backend_->run(op::OrderedSum{.x = rotated_,
                                 .out = results_.slice(0, first, 1),
                                 .options = {.accumulator = options_.accumulator, .upcast_terms = true}});
  }
}

float Accumulation::download_result() const {
  float result = 0;
  backend_->download(&result, results_.slice(0, 0, 1));
  return result;
}

// Products of two numbers of at most 24 bits are exact in double.
double Accumulation::exact(const std::vector<double>& terms) const {
  if (!of_products()) return exact_sum(terms);
  std::vector<double> products(terms.size());
  std::transform(terms.begin(), terms.end(), products.begin(), [](double v) { return v * v; });
  return exact_sum(products);
}

void Accumulation::finish(const Launch& launch) {
  const auto result = static_cast<double>(download_result());
  const double stored = exact({on_host_.begin(), on_host_.end()});
  const double real = exact(real_);
  const double ulp = ulp_at(stored, options_.accumulator);
  const auto percent = [](double is, double should_be) { return (is - should_be) / std::abs(should_be) * 100; };
  launch.report(result_metric, result);
  launch.report(exact_stored_metric, stored);
  launch.report(exact_real_metric, real);
  launch.report(error_ulp_metric, (result - stored) / ulp);
  if (stored != 0) launch.report(rounding_error_metric, percent(result, stored));
  if (real != 0) launch.report(total_error_metric, percent(result, real));
  if (order_ == Order::ring) {
    const std::vector<float> rings = assay::workload::download_f32(*backend_, results_);
    const auto [least, most] = std::minmax_element(rings.begin(), rings.end());
    launch.report(ring_spread_metric, (static_cast<double>(*most) - static_cast<double>(*least)) / ulp);
  }
}

float Accumulation::expected() const {
  if (of_ranks()) {
    std::vector<float> sums;
    const std::span<const float> terms = on_host_;
    for (std::int64_t r = 0; r < ranks_; ++r)
      sums.push_back(ordered_sum(
          terms.subspan(static_cast<std::size_t>(first_of(r)), static_cast<std::size_t>(first_of(r + 1) - first_of(r))),
          {}));
    return ordered_sum(sums, {.accumulator = options_.accumulator,
                              .order = order_ == Order::tree ? SumOrder::pairwise : SumOrder::sequential,
                              .upcast_terms = true});
  }
  if (operation_ == Operation::dot) {
    std::vector<float> products;
    for (const float x : on_host_) {
      const float read = options_.upcast_terms ? round_to(x, options_.accumulator) : x;
      products.push_back(round_to(read * read, options_.accumulator));
    }
    return ordered_sum(products, options_);
  }
  if (!stores_) return ordered_sum(on_host_, options_);
  if (options_.order != SumOrder::chunked) return round_to(ordered_sum(on_host_, options_), stored_);
  SumOptions in_turn = options_;
  in_turn.order = SumOrder::sequential;
  std::vector<float> sums;
  const auto chunk = static_cast<std::size_t>(options_.chunk);
  for (std::size_t begin = 0; begin < on_host_.size(); begin += chunk)
    sums.push_back(round_to(
        ordered_sum(std::span(on_host_).subspan(begin, std::min(chunk, on_host_.size() - begin)), in_turn), stored_));
  return ordered_sum(sums, in_turn);
}

// A library sums as it likes: within the bound of any order of n fp32 additions, of the rounding of its inputs to tf32
// (half a unit in 2^-10 for each factor), and of that of the result.
void Accumulation::check_product(double result) const {
  // The terms are squares, so this is also the sum of absolute values.
  const double magnitude = exact({on_host_.begin(), on_host_.end()});
  const double bound = magnitude * (static_cast<double>(terms_) * 0x1p-24 + (tf32_ ? 2 * 0x1p-11 : 0)) +
                       ulp_at(magnitude, options_.accumulator);
  if (!(std::abs(result - magnitude) <= bound))
    throw Error(ASSAY_WRONG_RESULT, "the product is " + number(result, "%.9g") + ", exactly " +
                                        number(magnitude, "%.9g") + ", and no order of additions is off by more than " +
                                        number(bound));
}

void Accumulation::check_sum(double result, double should_be) const {
  if (result == should_be && std::signbit(result) == std::signbit(should_be)) return;
  if (std::isnan(result) && std::isnan(should_be)) return;
  throw Error(ASSAY_WRONG_RESULT, "the device has " + number(result, "%.9g") +
                                      "; the same roundings on the host give " + number(should_be, "%.9g"));
}

// Checks what the timed steps have left, and then what one more leaves in results that are spoiled, since what the
// first step has left could pass for what the others did.
std::string Accumulation::verify(const Launch& launch) {
  check_stored(std::vector<float>(real_.begin(), real_.end()), on_host_, terms_dtype_, "term");
  const bool is_product = operation_ == Operation::matmul;
  const double should_be = is_product ? 0 : static_cast<double>(expected());
  const auto check_result = [&] {
    const auto result = static_cast<double>(download_result());
    is_product ? check_product(result) : check_sum(result, should_be);
    return number(result, "%.9g");
  };
  (void)check_result();
  for (const Tensor& t : {partials_, stored_partials_, rotated_, results_, product_})
    backend_->run(op::Fill{.x = t, .value = std::isnan(should_be) ? 0.0 : NAN});
  run(launch);
  const std::string text = check_result();
  return text + (is_product ? " is within what any order of additions may give"
                            : " is the same to the bit as the same roundings on the host");
}

}  // namespace mixed_precision
