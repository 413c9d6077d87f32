#include "matmul.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "common/chosen_algorithms.hpp"
#include "cpu_backend.hpp"
#include "matmul_candidates.hpp"
#include "matmul_tuner.hpp"

namespace assay::cpu {
namespace {

using compute::size_of;
using memory_type = dnnl::memory::data_type;

// ---- the problem, as oneDNN receives it ----------------------------------------------------------------------------

// A product [batch..., m, k] x [batch..., k, n]. Also the key of the cache: no padding, compared as bytes.
struct Problem {
  std::int64_t batch[2] = {1, 1};
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_step[4] = {}, b_step[4] = {}, c_step[4] = {};
  std::int32_t batch_rank = 0;
  DType input{}, output{};
  std::uint32_t alpha_bits = 0;
  std::uint32_t sum_bits = 0;  // the factor of what c holds before; 0: c is written anew
  std::int32_t bias = 0;       // 0: none, or 1 + its type
};
static_assert(std::has_unique_object_representations_v<Problem>);

struct SameProblem {
  bool operator()(const Problem& x, const Problem& y) const { return std::memcmp(&x, &y, sizeof x) == 0; }
};
struct HashProblem {
  std::size_t operator()(const Problem& p) const {
    std::uint64_t word[sizeof(Problem) / sizeof(std::uint64_t)];
    std::memcpy(word, &p, sizeof word);
    std::uint64_t hash = 0;
    for (const std::uint64_t w : word) hash = (hash ^ w) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    return hash;
  }
};

std::string describe(const Problem& p) {
  std::string batch;
  for (int i = 0; i < p.batch_rank; ++i) batch += fmt::format("{}x", p.batch[i]);
  return fmt::format("matmul {}->{} {}[{}x{}]*[{}x{}]{}{}{}", name_of(p.input), name_of(p.output), batch, p.m, p.k, p.k,
                     p.n, p.sum_bits ? " accumulate" : "", p.bias ? " bias" : "",
                     std::bit_cast<float>(p.alpha_bits) == 1.0F ? "" : " scaled");
}

std::int64_t multiply_adds(const Problem& p) { return p.batch[0] * p.batch[1] * p.m * p.n * p.k; }

// With how its operands lie, which decides as much as their extents.
std::string describe_with_steps(const Problem& p) {
  const auto steps = [&](const std::int64_t(&step)[4]) { return fmt::join(step, step + p.batch_rank + 2, ","); };
  return fmt::format("{} steps {} {} {}{}", describe(p), steps(p.a_step), steps(p.b_step), steps(p.c_step),
                     p.bias ? fmt::format(" bias of {}", name_of(static_cast<DType>(p.bias - 1))) : "");
}

// The steps of a matrix of `rows` by `columns`. Where an extent is 1 its step is never taken; a canonical one lets
// oneDNN see that the matrix is dense.
struct MatrixSteps {
  std::int64_t row, column;
};
MatrixSteps matrix_steps(const Tensor& t, bool transpose, std::int64_t rows, std::int64_t columns) {
  MatrixSteps s{t.step(-2), t.step(-1)};
  if (transpose) std::swap(s.row, s.column);
  if (columns == 1) s.column = 1;
  if (rows == 1) s.row = s.column == 1 ? columns : 1;
  return s;
}

// A checked product.
Problem problem_of(const op::Matmul& op) {
  const Tensor &a = op.a, &b = op.b, &c = op.c;
  Problem p;
  p.m = c.dim(-2), p.n = c.dim(-1);
  p.k = op.transpose_a ? a.dim(-2) : a.dim(-1);
  if (p.k == 0) invalid(op.name, "the inner dimension is 0; expected at least 1");
  // Leading dimensions of 1 are dropped, and two that all operands walk in one stride become one: a plain batch is what
  // oneDNN knows best.
  int batch_rank = 0;
  for (int i = c.rank - 3; i >= 0; --i) {  // innermost first
    if (c.dim(i) == 1) continue;
    if (batch_rank == 1 && a.step(i) == p.a_step[0] * p.batch[0] && b.step(i) == p.b_step[0] * p.batch[0] &&
        c.step(i) == p.c_step[0] * p.batch[0]) {
      p.batch[0] *= c.dim(i);
      continue;
    }
    if (batch_rank == 1)
      p.batch[1] = p.batch[0], p.a_step[1] = p.a_step[0], p.b_step[1] = p.b_step[0], p.c_step[1] = p.c_step[0];
    p.batch[0] = c.dim(i), p.a_step[0] = a.step(i), p.b_step[0] = b.step(i), p.c_step[0] = c.step(i);
    ++batch_rank;
  }
  p.batch_rank = batch_rank;
  const auto put = [&](std::int64_t(&step)[4], const Tensor& t, bool transpose, std::int64_t rows,
                       std::int64_t columns) {
    const MatrixSteps s = matrix_steps(t, transpose, rows, columns);
    if (s.row != 1 && s.column != 1)
      reject("matmul",
             fmt::format("an operand of {} by {} steps by {} and {} elements; expected one of them to be 1: copy "
                         "it first",
                         rows, columns, s.row, s.column));
    step[batch_rank] = s.row, step[batch_rank + 1] = s.column;
  };
  put(p.a_step, a, op.transpose_a, p.m, p.k);
  put(p.b_step, b, op.transpose_b, p.k, p.n);
  put(p.c_step, c, false, p.m, p.n);
  p.input = a.dtype, p.output = c.dtype;
  p.alpha_bits = std::bit_cast<std::uint32_t>(op.alpha);
  if (op.accumulate) p.sum_bits = std::bit_cast<std::uint32_t>(op.residual_scale);
  if (op.bias) p.bias = 1 + static_cast<std::int32_t>(op.bias.dtype);
  return p;
}

// ---- oneDNN --------------------------------------------------------------------------------------------------------

memory_type type_of(DType t) { return t == DType::f32 ? memory_type::f32 : memory_type::bf16; }

dnnl::memory::dims dims_of(const Problem& p, std::int64_t rows, std::int64_t columns) {
  dnnl::memory::dims d(p.batch, p.batch + p.batch_rank);
  d.push_back(rows);
  d.push_back(columns);
  return d;
}

dnnl::memory::desc desc_of(const Problem& p, std::int64_t rows, std::int64_t columns, DType t,
                           const std::int64_t (&step)[4]) {
  return {dims_of(p, rows, columns), type_of(t), dnnl::memory::dims(step, step + p.batch_rank + 2)};
}

// One number for each column of c. An empty description where there is none: oneDNN takes it for that.
dnnl::memory::desc bias_desc_of(const Problem& p) {
  if (!p.bias) return {};
  dnnl::memory::dims extent(static_cast<std::size_t>(p.batch_rank) + 1, 1), step(extent.size() + 1, p.n);
  extent.push_back(p.n);
  step.back() = 1;
  return {extent, type_of(static_cast<DType>(p.bias - 1)), step};
}

dnnl::primitive_attr attributes_of(const Problem& p) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops then;
  const float alpha = std::bit_cast<float>(p.alpha_bits), kept = std::bit_cast<float>(p.sum_bits);
#if DNNL_VERSION_MAJOR < 3
  if (alpha != 1.0F) attributes.set_output_scales(0, {alpha});
  if (p.sum_bits) then.append_sum(kept);
#else
  if (alpha != 1.0F) then.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0.0F);
  if (p.sum_bits) then.append_sum(kept);
#endif
  if (then.len() > 0) attributes.set_post_ops(then);
  return attributes;
}

// oneDNN offers its block-wise kernel first and its packing GEMM after it. For one large product of fp32 the packing
// GEMM is faster: without transposes (measured on Zen 4: up to 14% where the inner dimension is wide), and by a few
// percent with one transpose once the dimension of tokens, m of a b' and k of a' b, is large. Below that it is no
// faster, and it suffers more when another process takes a core, since its threads wait for each other more often.
// Where all rows of b begin at the same place of a page it is more than twice as fast (on an Intel processor with AMX,
// 61 GFLOP/s against 151 of one core), presumably since they crowd each other out of the block-wise kernel's cache. It
// adds a bias in a separate pass, which costs more than it gains unless the rows of c are long (3% to 10% at 384 and
// 512 columns, 6% the other way at 8192). It packs products of bf16 at half the rate of a block-wise kernel with AMX.
bool prefers_packing(const Problem& p, std::string_view first) {
  constexpr std::int64_t many_tokens = 1536, long_row = 4096, page_bytes = 4096;
  if (first.find("amx") != std::string_view::npos) return false;
  if (p.bias && p.n < long_row) return false;
  if (p.batch_rank > 0 || p.m * p.n * p.k < (std::int64_t{1} << 24)) return false;
  const bool a_by_columns = p.a_step[1] != 1, b_by_columns = p.b_step[1] != 1;
  if (a_by_columns && b_by_columns) return false;
  if (!b_by_columns && p.b_step[0] * static_cast<std::int64_t>(size_of(p.input)) % page_bytes == 0) return true;
  if (a_by_columns) return p.k >= many_tokens;
  if (b_by_columns) return p.m >= many_tokens;
  return true;
}

MatmulDescription description_of(const Problem& p) {
  return {desc_of(p, p.m, p.k, p.input, p.a_step), desc_of(p, p.k, p.n, p.input, p.b_step),
          desc_of(p, p.m, p.n, p.output, p.c_step), bias_desc_of(p), attributes_of(p)};
}

// At least one, and first what runs where nothing is timed. Throws dnnl::error.
std::vector<MatmulCandidate> candidates_of(const Problem& p, const MatmulDescription& description,
                                           const dnnl::engine& engine) {
  std::vector<Packing> packings;
  if (p.batch_rank == 0 && multiply_adds(p) >= MatmulTuner::fewest_multiply_adds) {
    packings.push_back({false, true});
    if (p.a_step[1] != 1) packings.insert(packings.end(), {{true, false}, {true, true}});
  }
  std::vector<MatmulCandidate> candidates = candidates_of(description, engine, packings);
  // What oneDNN lists besides, the same kernel for processors without AMX, takes four to eight times as long: no time
  // can make it the choice, but a mistaken one.
  const auto has_amx = [](const MatmulCandidate& c) { return c.name.find("amx") != std::string::npos; };
  // A product with AMX of oneDNN 2.6.3 has ended in an illegal instruction at an odd inner dimension. No model has one,
  // so all of them do without AMX.
  const bool has_odd_inner_dimension = p.k % 2 != 0;
  if (has_odd_inner_dimension && !std::all_of(candidates.begin(), candidates.end(), has_amx))
    std::erase_if(candidates, has_amx);
  else if (has_amx(candidates.front()))
    std::erase_if(candidates, [&](const MatmulCandidate& c) { return c.name.starts_with("brg") && !has_amx(c); });
  if (prefers_packing(p, candidates.front().name)) {
    const auto packing = std::find_if(candidates.begin(), candidates.end(),
                                      [](const MatmulCandidate& c) { return c.name.starts_with("gemm"); });
    if (packing != candidates.end()) std::rotate(candidates.begin(), packing, packing + 1);
  }
  return candidates;
}

}  // namespace

struct MatmulCache::Plan {
  std::string operation, implementation, origin;
  bool is_provisional = false;  // prepared with Tuning::first_choice
  RunnableMatmul matmul;
};

struct MatmulCache::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  MatmulTuner tuner{MatmulTuner::settings_here()};
  compute::Tuning tuning = compute::Tuning::measured;
  std::unordered_map<Problem, std::unique_ptr<Plan>, HashProblem, SameProblem> plans;
  std::vector<const Plan*> in_order;  // of creation

  std::unique_ptr<Plan> make(const Problem& p, bool preparing) {
    auto plan = std::make_unique<Plan>();
    plan->is_provisional = preparing && tuning == compute::Tuning::first_choice;
    plan->operation = describe_with_steps(p);
    const std::string text = describe(p);
    try {
      const MatmulDescription description = description_of(p);
      const std::vector<MatmulCandidate> candidates = candidates_of(p, description, engine);
      if (is_reference(candidates.front().name))
        reject(text.c_str(),
               fmt::format("oneDNN would run its unoptimised \"{}\" on this machine; expected an optimised one: use "
                           "another precision or size",
                           candidates.front().name));
      MatmulTuner::Choice choice{0, "not prepared"};
      if (preparing)
        choice = tuner.choose(plan->operation, multiply_adds(p), description, candidates, engine, stream, tuning);
      plan->implementation = candidates[choice.candidate].name;
      plan->origin = choice.origin;
      plan->matmul = RunnableMatmul(description, candidates[choice.candidate], engine);
    } catch (const dnnl::error& e) {
      reject(text.c_str(), fmt::format("oneDNN has no implementation of this shape and type on this machine "
                                       "({}); expected one: use another precision or size",
                                       e.what()));
    }
    return plan;
  }
};

MatmulCache::MatmulCache() : impl_(std::make_unique<Impl>()) {}
MatmulCache::~MatmulCache() = default;

void MatmulCache::set_tuning(compute::Tuning tuning) { impl_->tuning = tuning; }

void MatmulCache::share_tuning(compute::AlgorithmExchange* with) { impl_->tuner.share(with); }

MatmulCache::Plan& MatmulCache::find(const op::Matmul& op, bool preparing) {
  const Problem problem = problem_of(op);
  if (const auto found = impl_->plans.find(problem); found != impl_->plans.end()) {
    const bool is_wanted_measured = preparing && impl_->tuning == compute::Tuning::measured;
    if (!found->second->is_provisional || !is_wanted_measured) return *found->second;
    std::erase(impl_->in_order, found->second.get());
    impl_->plans.erase(found);
  }
  Plan& plan = *impl_->plans.emplace(problem, impl_->make(problem, preparing)).first->second;
  impl_->in_order.push_back(&plan);
  if (!plan.is_provisional) compute::note_algorithm(plan.operation, "oneDNN " + plan.implementation);
  return plan;
}

void MatmulCache::end_preparing() { impl_->tuner.end_preparing(); }

bool MatmulCache::multiplies_bf16() {
  static const bool multiplies = [] {
    Problem p;
    p.m = p.n = p.k = 64;
    for (auto* step : {&p.a_step, &p.b_step, &p.c_step}) (*step)[0] = 64, (*step)[1] = 1;
    p.input = p.output = DType::bf16;
    p.alpha_bits = std::bit_cast<std::uint32_t>(1.0F);
    try {
      return !is_reference(candidates_of(p, description_of(p), dnnl::engine(dnnl::engine::kind::cpu, 0)).front().name);
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return multiplies;
}

std::size_t MatmulCache::scratch_bytes(const Plan& plan) { return plan.matmul.scratch_bytes(); }

void MatmulCache::execute(Plan& plan, void* a, void* b, void* c, void* bias, void* scratch) {
  plan.matmul.run(impl_->stream, a, b, c, bias, scratch);
}

std::vector<PrimitiveInfo> MatmulCache::primitives() const {
  std::vector<PrimitiveInfo> list;
  for (const Plan* plan : impl_->in_order)
    list.push_back({plan->operation, plan->implementation + ", " + plan->origin});
  return list;
}

namespace {

// `t` in fp32 and without gaps, at `address`.
Tensor widened(const Tensor& t, void* address) {
  Tensor wide = t;
  wide.data = address, wide.dtype = DType::f32;
  std::int64_t step = 1;
  for (std::size_t i = static_cast<std::size_t>(t.rank); i-- > 0; step *= t.shape[i]) wide.stride[i] = step;
  return wide;
}

}  // namespace

// A number in bf16 is one in fp32 as well, and a product of bf16 is summed in fp32 in any case: only the last bits of
// the sum can differ, by its order. Numbers of 8 bits are multiplied by their scales first: no processor here has
// products of them, and workloads do not ask for any; what the operation does can be tested without a GPU.
void CpuBackend::matmul_widened(const op::Matmul& op) {
  const Tensor &c = op.c, &bias = op.bias;
  std::size_t taken = 0;
  const auto place = [&](const Tensor& t) {
    const std::size_t offset = taken;
    taken += aligned(static_cast<std::size_t>(t.elements()) * sizeof(float));
    return offset;
  };
  const bool narrow_c = c.dtype == DType::bf16, narrow_bias = bias && narrow_c;
  const std::size_t at_a = place(op.a), at_b = place(op.b), at_c = narrow_c ? place(c) : 0,
                    at_bias = narrow_bias ? place(bias) : 0;
  op::Matmul wide = op;
  wide.a = widened(op.a, op.a.data), wide.b = widened(op.b, op.b.data);
  if (narrow_c) wide.c = widened(c, c.data);
  if (narrow_bias) wide.bias = widened(bias, bias.data);
  wide.a_scale = wide.b_scale = {};
  MatmulCache::Plan& plan = matmuls_->find(wide, preparing());
  char* const memory = static_cast<char*>(scratch(taken + MatmulCache::scratch_bytes(plan)));
  if (preparing()) return;
  const auto copied = [&](const Tensor& t, std::size_t offset, const Tensor& scale = {}) {
    const Tensor copy = widened(t, memory + offset);
    static constexpr float one = 1;
    const bool by_rows = static_cast<bool>(op.b_scale);
    if (t.dtype == DType::f8_e4m3)
      data_kernels(isa_).widen_rows(data_of<float>(copy), data_of<std::uint8_t>(t),
                                    scale ? data_of<float>(scale) : &one, by_rows ? t.dim(0) : 1,
                                    by_rows ? t.dim(1) : t.elements());
    else
      execute(op::Copy{.to = copy, .from = t});
    return copy.data;
  };
  void* const wide_c = !narrow_c ? c.data : op.accumulate ? copied(c, at_c) : static_cast<void*>(memory + at_c);
  matmuls_->execute(plan, copied(op.a, at_a, op.a_scale), copied(op.b, at_b, op.b_scale), wide_c,
                    narrow_bias ? copied(bias, at_bias) : bias.data, memory + taken);
  if (narrow_c) execute(op::Copy{.to = c, .from = widened(c, wide_c)});
}

void CpuBackend::execute(const op::Matmul& op) {
  const Tensor& c = op.c;
  if (c.step(-1) != 1 && c.step(-2) == 1 && c.dim(-1) != 1) {
    // oneDNN writes rows: a c that lies by columns is written as its transpose, c' = b' a'.
    if (op.bias)
      reject("matmul with a bias", "c lies by columns; expected rows: write its transpose, then add the bias");
    if (op.residual)
      reject("matmul with a residual", "c lies by columns; expected rows: write its transpose, then add the residual");
    return execute(op::Matmul{.a = op.b,
                              .b = op.a,
                              .c = c.transposed(c.rank - 2, c.rank - 1),
                              .transpose_a = !op.transpose_b,
                              .transpose_b = !op.transpose_a,
                              .alpha = op.alpha,
                              .accumulate = op.accumulate});
  }
  if (c.elements() == 0) return;
  if (op.residual) {
    execute(op::Copy{.to = c, .from = op.residual});
    return execute(op::Matmul{.a = op.a,
                              .b = op.b,
                              .c = c,
                              .transpose_a = op.transpose_a,
                              .transpose_b = op.transpose_b,
                              .alpha = op.alpha,
                              .accumulate = true,
                              .residual_scale = op.residual_scale});  // here the factor of what c holds
  }
  if (op.a_scale || (op.a.dtype == DType::bf16 && !MatmulCache::multiplies_bf16())) return matmul_widened(op);
  MatmulCache::Plan& plan = matmuls_->find(op, preparing());
  void* const memory = scratch(MatmulCache::scratch_bytes(plan));
  if (!preparing()) matmuls_->execute(plan, op.a.data, op.b.data, c.data, op.bias.data, memory);
}

}  // namespace assay::cpu
