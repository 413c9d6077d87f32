// The ways in which oneDNN can carry one product out: its implementations, each on the operands as they lie and, for
// one matrix, on operands that are first packed into the layout that the implementation likes best.
#pragma once
#include <array>
#include <cstddef>
#include <dnnl.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::cpu {

// Rounds up to the 64 bytes at which oneDNN likes its operands to begin.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// What oneDNN receives of a product c = a b. An empty bias means none.
struct MatmulDescription {
  dnnl::memory::desc a, b, c, bias;
  dnnl::primitive_attr attributes;
};

// Which operands are copied into the implementation's own layout in each run.
struct Packing {
  bool a = false, b = false;
};

struct MatmulCandidate {
  std::string name;  // the same in each process, and unlike the others': "brg:avx512_core, packs b"
  Packing packing;   // as it was asked for
};

// Those that are optimised, as oneDNN lists them: first without packing, then with each of `packings`. Where oneDNN has
// nothing but its reference ("ref..."), that alone. Throws dnnl::error where it has nothing at all.
std::vector<MatmulCandidate> candidates_of(const MatmulDescription& description, const dnnl::engine& engine,
                                           const std::vector<Packing>& packings);

bool is_reference(std::string_view implementation);

// A candidate, made. The scratch is aligned to 64 bytes.
class RunnableMatmul {
 public:
  RunnableMatmul() = default;
  RunnableMatmul(const MatmulDescription& description, const MatmulCandidate& candidate, const dnnl::engine& engine);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string implementation() const;  // as oneDNN names it
  // No bias: nullptr. Takes no memory. Throws dnnl::error.
  void run(const dnnl::stream& stream, void* a, void* b, void* c, void* bias, void* scratch);

 private:
  // A copy of an operand in another layout, made at an offset of the scratch.
  struct PackedOperand {
    dnnl::reorder reorder;
    dnnl::memory from, to, scratch;
    std::size_t offset = 0, scratch_offset = 0;
    bool is_used = false;
  };
  void pack(PackedOperand& operand, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
            const dnnl::engine& engine);
  void* packed(PackedOperand& operand, const dnnl::stream& stream, void* from, char* scratch);

  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_, scratch_;
  PackedOperand packed_a_, packed_b_;
  std::size_t scratch_bytes_ = 0;
  std::array<dnnl_exec_arg_t, 5> arguments_{};
  int argument_count_ = 4;  // 5 with a bias
};

}  // namespace assay::cpu
