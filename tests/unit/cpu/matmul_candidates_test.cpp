// Each way in which oneDNN can carry a product out here, whichever is chosen, against float64.
#include "cpu/matmul_candidates.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>

namespace assay::cpu {
namespace {

using dnnl::memory;
using Type = memory::data_type;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Numbers of few bits, which both types hold.
float number(std::int64_t i, int salt) {
  return static_cast<float>((static_cast<std::uint64_t>(i + salt) * 2654435761u >> 7) % 33) / 16.0F - 1.0F;
}

// Memory of one type, aligned as oneDNN likes it.
class Buffer {
 public:
  Buffer(std::int64_t count, Type type, int salt) : type_(type), bytes_(at(count) * (type == Type::f32 ? 4 : 2) + 64) {
    for (std::int64_t i = 0; i < count; ++i) set(i, number(i, salt));
  }
  void set(std::int64_t i, float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto half = static_cast<std::uint16_t>(bits >> 16);
    if (type_ == Type::f32)
      std::memcpy(data() + 4 * i, &bits, 4);
    else
      std::memcpy(data() + 2 * i, &half, 2);
  }
  float get(std::int64_t i) {
    std::uint32_t bits = 0;
    std::uint16_t half = 0;
    if (type_ == Type::f32)
      std::memcpy(&bits, data() + 4 * i, 4);
    else
      std::memcpy(&half, data() + 2 * i, 2), bits = static_cast<std::uint32_t>(half) << 16;
    return std::bit_cast<float>(bits);
  }
  char* data() {
    void* address = bytes_.data();
    std::size_t room = bytes_.size();
    return static_cast<char*>(std::align(64, 1, address, room));
  }

 private:
  Type type_;
  std::vector<char> bytes_;
};

struct Form {
  Type input, output;
  bool transpose_a, transpose_b, accumulate, bias;
};

// Odd extents, so that every implementation has a rest to care for.
constexpr std::int64_t m = 67, n = 83, k = 131;

void check(const Form& form, std::set<std::string>& seen) {
  SCOPED_TRACE(std::string(form.input == Type::f32 ? "fp32" : "bf16") + (form.output == Type::f32 ? " to fp32" : "") +
               (form.transpose_a ? " ta" : "") + (form.transpose_b ? " tb" : "") + (form.accumulate ? " sum" : "") +
               (form.bias ? " bias" : ""));
  using dims = memory::dims;
  MatmulDescription d;
  d.a = {{m, k}, form.input, form.transpose_a ? dims{1, m} : dims{k, 1}};
  d.b = {{k, n}, form.input, form.transpose_b ? dims{1, k} : dims{n, 1}};
  d.c = {{m, n}, form.output, dims{n, 1}};
  if (form.bias) d.bias = {{1, n}, Type::f32, dims{n, 1}};
  d.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (form.accumulate) {
    dnnl::post_ops then;
    then.append_sum(1.0F);
    d.attributes.set_post_ops(then);
  }
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const dnnl::stream stream(engine);
  Buffer a(m * k, form.input, 1), b(k * n, form.input, 2), bias(n, Type::f32, 3);
  std::vector<double> reference;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = (form.accumulate ? number(i * n + j, 4) : 0.0) + (form.bias ? bias.get(j) : 0.0);
      for (std::int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(a.get(form.transpose_a ? l * m + i : i * k + l)) *
               b.get(form.transpose_b ? j * k + l : l * n + j);
      reference.push_back(sum);
    }
  for (const MatmulCandidate& candidate : candidates_of(d, engine, {{false, true}, {true, false}, {true, true}})) {
    if (is_reference(candidate.name)) continue;
    SCOPED_TRACE(candidate.name);
    seen.insert(candidate.name);
    RunnableMatmul matmul(d, candidate, engine);
    // oneDNN lists other implementations once it has made one of this product.
    EXPECT_TRUE(candidate.name.starts_with(matmul.implementation())) << matmul.implementation();
    Buffer c(m * n, form.output, 4), scratch(static_cast<std::int64_t>(matmul.scratch_bytes()), Type::bf16, 5);
    matmul.run(stream, a.data(), b.data(), c.data(), form.bias ? bias.data() : nullptr, scratch.data());
    double worst = 0.0;
    for (std::int64_t i = 0; i < m * n; ++i)
      worst = std::max(worst, std::fabs(c.get(i) - reference[at(i)]) / (std::fabs(reference[at(i)]) + 1.0));
    EXPECT_LT(worst, form.output == Type::f32 ? 1e-5 : 8e-3);
  }
}

TEST(MatmulCandidates, EachIsRight) {
  std::set<std::string> seen;
  for (const auto& [input, output] :
       {std::pair(Type::f32, Type::f32), {Type::bf16, Type::bf16}, {Type::bf16, Type::f32}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const auto& [accumulate, bias] : {std::pair(false, false), {true, false}, {false, true}}) {
          try {
            check({input, output, transpose_a, transpose_b, accumulate, bias}, seen);
          } catch (const dnnl::error&) {
            EXPECT_NE(input, Type::f32) << "oneDNN has products of fp32 everywhere, of bf16 not";
          }
        }
  EXPECT_GE(seen.size(), 2u) << "nothing to choose among";
  std::string names;
  for (const std::string& name : seen) names += "\n  " + name;
  std::printf("implementations seen:%s\n", names.c_str());
}

// A candidate is found again by its name, in oneDNN's list and in a file.
TEST(MatmulCandidates, HaveNamesOfTheirOwn) {
  MatmulDescription d;
  d.a = {{64, 64}, Type::f32, memory::dims{1, 64}};
  d.b = d.c = {{64, 64}, Type::f32, memory::dims{64, 1}};
  d.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto list = candidates_of(d, engine, {{false, true}, {true, false}, {true, true}, {false, true}});
  std::set<std::string> names;
  for (const MatmulCandidate& candidate : list) EXPECT_TRUE(names.insert(candidate.name).second) << candidate.name;
  EXPECT_FALSE(list.front().packing.a || list.front().packing.b);
}

}  // namespace
}  // namespace assay::cpu
