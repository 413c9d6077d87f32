#!/usr/bin/env bash
# oneDNN 2.6.3: with AVX2 the first row of a product has other bits than the same row multiplied alone, on one thread.
#
# Expected: a row of a matrix product depends on that row alone; it is the same dot products whatever stands below it.
# Behaviour: gemm:jit cuts k into blocks by the size of the whole problem. With 64 rows a sum over k = 768 is cut in another way than with
# one row, so most elements differ in the last bits; up to k = 256 there is one block and none differs. brg:avx512_core differs nowhere.
# Why it matters: a step checked row by row, or a batch of another size, is compared by a tolerance and never by bits.
# Seen on Debian 12 with a processor that has AVX-512:
#   AVX2 k 64: 0 of 768; k 256: 0 of 768; k 768: 720 of 768; k 1024: 731 of 768 elements of the first row differ
#   AVX512_CORE k 64: 0 of 768; k 256: 0 of 768; k 768: 0 of 768; k 1024: 0 of 768 elements of the first row differ
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
grep -qw avx2 /proc/cpuinfo || { echo "skipped: needs a processor with AVX2"; exit 0; }
cd -- "$folder"
apt-get download -qq libdnnl-dev=2.6.3-1 libdnnl2=2.6.3-1 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >rows.cpp <<'CPP'
#include <dnnl.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
int main() {
  constexpr int rows = 64, n = 768;
  std::uint32_t state = 1;
  const char* separator = "";
  for (const int k : {64, 256, 768, 1024}) {
    std::vector<float> a(rows * k), b(k * n), all(rows * n), alone(n);
    for (auto* matrix : {&a, &b})
      for (float& x : *matrix) x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    using namespace dnnl;
    const engine cpu(engine::kind::cpu, 0);
    const auto multiply = [&](int m, std::vector<float>& c) {
      const auto plain = [](int h, int w) { return memory::desc({h, w}, memory::data_type::f32, memory::format_tag::ab); };
      stream s(cpu);
      matmul(matmul::primitive_desc(matmul::desc(plain(m, k), plain(k, n), plain(m, n)), cpu))
          .execute(s, {{DNNL_ARG_SRC, memory(plain(m, k), cpu, a.data())},
                       {DNNL_ARG_WEIGHTS, memory(plain(k, n), cpu, b.data())},
                       {DNNL_ARG_DST, memory(plain(m, n), cpu, c.data())}});
      s.wait();
    };
    multiply(rows, all);
    multiply(1, alone);
    int count = 0;
    for (int i = 0; i < n; ++i) count += std::memcmp(&all[i], &alone[i], 4) != 0;
    std::printf("%sk %d: %d of %d", separator, k, count, n);
    separator = "; ";
  }
  std::printf(" elements of the first row differ\n");
}
CPP
g++ -std=c++17 -O1 -Iusr/include rows.cpp -Lusr/lib/x86_64-linux-gnu -ldnnl -o rows
run_with() { echo "$1 $(ONEDNN_MAX_CPU_ISA=$1 OMP_NUM_THREADS=1 LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ./rows)"; }
run_with AVX2 | tee seen
grep -qE 'k 64: 0 of 768; k 256: 0 of 768; k 768: [1-9][0-9]* of 768; k 1024: [1-9]' seen || { echo "the behaviour has changed" >&2; exit 1; }
grep -qw avx512bw /proc/cpuinfo || exit 0
run_with AVX512_CORE | tee seen
grep -q 'k 768: 0 of 768; k 1024: 0 of 768' seen || { echo "the behaviour has changed" >&2; exit 1; }
