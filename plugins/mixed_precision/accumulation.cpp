#include "accumulation.hpp"

#include <algorithm>
#include <assay/train/backend_access.hpp>
#include <assay/train/checkpoint.hpp>
#include <assay/train/sampling.hpp>
#include <cmath>
#include <cstring>

#include "rounding.hpp"

namespace mixed_precision {

using assay::Error;
using assay::compute::DType;
using assay::compute::SumOptions;
using assay::compute::SumOrder;
using assay::compute::Tensor;
using assay::train::number;

namespace {

constexpr std::uint64_t terms_stream = 1;

DType dtype_of(std::string_view name) {
  return name == "bf16" ? DType::bf16 : name == "fp16" ? DType::f16 : DType::f32;
}

SumOrder order_of(std::string_view name) {
  return name == "chunked"       ? SumOrder::chunked
         : name == "pairwise"    ? SumOrder::pairwise
         : name == "compensated" ? SumOrder::compensated
         : name == "cascade"     ? SumOrder::cascade
                                 : SumOrder::sequential;
}

[[noreturn]] void refuse(const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); }

}  // namespace

Accumulation::Accumulation(const assay::Case& c)
    : host_(c.host()),
      seed_(c.seed()),
      operation_name_(c.get<std::string>("operation")),
      order_name_(c.get<std::string>("order")),
      data_(c.get<std::string>("data")),
      tf32_(c.get<std::string_view>("terms_dtype") == "tf32"),
      terms_dtype_(dtype_of(c.get<std::string_view>("terms_dtype"))),
      stored_(dtype_of(c.get<std::string_view>("stored"))),
      stores_(c.get<std::string_view>("stored") != "accumulator"),
      terms_(c.get<std::int64_t>("terms")),
      ranks_(c.get<std::int64_t>("simulated_ranks")),
      term_(c.get<double>("term")) {
  operation_ = operation_name_ == "dot"      ? Operation::dot
               : operation_name_ == "matmul" ? Operation::matmul
               : operation_name_ == "sum"    ? Operation::sum
               : order_name_ == "ring"       ? Operation::ring
                                             : Operation::tree;
  options_ = {.accumulator = dtype_of(c.get<std::string_view>("accumulator")),
              .order = order_of(order_name_),
              .chunk = c.get<std::int64_t>("chunk"),
              .upcast_terms = c.get<bool>("upcast"),
              .lanes = c.get<std::int64_t>("lanes")};
  check();
}

void Accumulation::check() const {
  const auto one_of = [&](std::initializer_list<std::string_view> orders, const char* text) {
    if (std::find(orders.begin(), orders.end(), order_name_) == orders.end())
      refuse("order \"" + order_name_ + "\" is none of operation \"" + operation_name_ + "\"; set " + text);
  };
  if (operation_name_ == "all_reduce")
    one_of({"ring", "tree"}, "ring or tree");
  else if (operation_ == Operation::matmul)
    one_of({"library"}, "library: the device's library decides");
  else
    one_of({"sequential", "chunked", "pairwise", "compensated", "cascade"},
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

void Accumulation::setup(const assay::Launch& launch) {
  backend_ = assay::train::open_backend(host_, launch);
  if (tf32_) backend_->set_product_math(assay::compute::ProductMath::tf32);
  take_memory();
  backend_->set_mode(assay::compute::Mode::prepare);
  backend_->random_normal(scratch_, seed_, terms_stream, 0.0F, 1.0F);
  backend_->copy(x_, scratch_);
  enqueue();
  backend_->set_mode(assay::compute::Mode::execute);
  if (const std::size_t wanted = backend_->workspace_bytes(); wanted > 0) {
    workspace_memory_ = assay::DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, wanted, "workspace");
    backend_->set_workspace(workspace_memory_.data(), wanted);
  }
  make_terms();
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
  if (data_ == "normal") {
    backend_->random_normal(scratch_, seed_, terms_stream, 0.0F, static_cast<float>(term_));
    const std::vector<float> made = assay::train::download_f32(*backend_, scratch_);
    real_.assign(made.begin(), made.end());
  } else {
    real_.assign(n, term_);
    if (data_ == "one_first") real_[0] = 1.0;
    std::vector<float> rounded(n);
    std::transform(real_.begin(), real_.end(), rounded.begin(), [](double v) { return static_cast<float>(v); });
    backend_->upload(scratch_, rounded.data());
  }
  backend_->copy(x_, scratch_);
  on_host_ = assay::train::download_f32(*backend_, x_);
}

void Accumulation::enqueue() const {
  if (operation_ == Operation::sum) return enqueue_sum();
  if (operation_ == Operation::dot) return backend_->ordered_dot(x_, x_, results_, options_);
  if (of_ranks()) return enqueue_ranks();
  backend_->matmul(x_.view({1, terms_}), x_.view({terms_, 1}), product_.view({1, 1}));
  backend_->copy(results_, product_);
}

void Accumulation::enqueue_sum() const {
  if (!stores_) return backend_->ordered_sum(x_, results_, options_);
  const SumOptions in_turn{.accumulator = options_.accumulator, .upcast_terms = options_.upcast_terms};
  if (options_.order != SumOrder::chunked) {
    backend_->ordered_sum(x_, partials_, options_);
    backend_->copy(stored_partials_, partials_);
    return backend_->copy(results_, stored_partials_);
  }
  for (std::int64_t i = 0; i < partials_.elements(); ++i) {
    const std::int64_t begin = i * options_.chunk;
    backend_->ordered_sum(x_.slice(0, begin, std::min(options_.chunk, terms_ - begin)), partials_.slice(0, i, 1),
                          in_turn);
  }
  backend_->copy(stored_partials_, partials_);
  backend_->ordered_sum(stored_partials_, results_, in_turn);
}

// Each rank adds its own terms in fp32. What goes from rank to rank has the accumulator's format, the ranks' own sums
// too: as they lie in the buffer that is reduced. A ring adds a piece of the buffer in the order of the ranks, each
// piece from another rank on.
void Accumulation::enqueue_ranks() const {
  for (std::int64_t r = 0; r < ranks_; ++r)
    backend_->ordered_sum(x_.slice(0, first_of(r), first_of(r + 1) - first_of(r)), partials_.slice(0, r, 1), {});
  if (operation_ == Operation::tree)
    return backend_->ordered_sum(
        partials_, results_.slice(0, 0, 1),
        {.accumulator = options_.accumulator, .order = SumOrder::pairwise, .upcast_terms = true});
  for (std::int64_t first = 0; first < ranks_; ++first) {
    backend_->copy(rotated_.slice(0, 0, ranks_ - first), partials_.slice(0, first, ranks_ - first));
    if (first > 0) backend_->copy(rotated_.slice(0, ranks_ - first, first), partials_.slice(0, 0, first));
    backend_->ordered_sum(rotated_, results_.slice(0, first, 1),
                          {.accumulator = options_.accumulator, .upcast_terms = true});
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

void Accumulation::finish(const assay::Launch& launch) {
  const auto result = static_cast<double>(download_result());
  const double stored = exact({on_host_.begin(), on_host_.end()});
  const double real = exact(real_);
  const double ulp = ulp_at(stored, options_.accumulator);
  const auto percent = [](double is, double should_be) { return (is - should_be) / std::abs(should_be) * 100; };
  launch.metric(result_metric, result);
  launch.metric(exact_stored_metric, stored);
  launch.metric(exact_real_metric, real);
  launch.metric(error_ulp_metric, (result - stored) / ulp);
  if (stored != 0) launch.metric(rounding_error_metric, percent(result, stored));
  if (real != 0) launch.metric(total_error_metric, percent(result, real));
  if (operation_ == Operation::ring) {
    const std::vector<float> rings = assay::train::download_f32(*backend_, results_);
    const auto [least, most] = std::minmax_element(rings.begin(), rings.end());
    launch.metric(ring_spread_metric, (static_cast<double>(*most) - static_cast<double>(*least)) / ulp);
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
                              .order = operation_ == Operation::tree ? SumOrder::pairwise : SumOrder::sequential,
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

std::string Accumulation::verify(const assay::Launch&) {
  check_stored(std::vector<float>(real_.begin(), real_.end()), on_host_, terms_dtype_, "term");
  const float result = download_result();
  const std::string text = number(static_cast<double>(result), "%.9g");
  if (operation_ == Operation::matmul) {
    check_product(static_cast<double>(result));
    return text + " is within what any order of additions may give";
  }
  const float should_be = expected();
  if (std::memcmp(&result, &should_be, sizeof result) != 0 && !(std::isnan(result) && std::isnan(should_be)))
    throw Error(ASSAY_WRONG_RESULT, "the device has " + text + "; the same roundings on the host give " +
                                        number(static_cast<double>(should_be), "%.9g"));
  return text + " is the same to the bit as the same roundings on the host";
}

}  // namespace mixed_precision
