#!/usr/bin/env bash
# oneDNN 2.6.3: with AVX2 a product over a long dimension has other bits with another number of threads; with AVX-512 it has not.
#
# Expected: a library's result depends on its instruction set or on how it splits sums, the same way everywhere.
# Behaviour: the AVX2 implementation (gemm:jit) splits the sum over k among threads where m and n are small, so nearly every element of a
# 32 x 32 product over 100,000 differs between 1, 2 and 3 threads. The AVX-512 one (brg:avx512_core) splits none. Each repeats its own bits.
# Why it matters: two runs of one case agree to the bit on one machine and not on another, and [run] threads is a part of the question.
# Seen on Debian 12 with a processor that has AVX-512:
#   AVX2 gemm:jit: 2 threads 956, 1 thread again 0, 3 threads 977 of 1024 elements differ from 1 thread
#   AVX512_CORE brg:avx512_core: 2 threads 0, 1 thread again 0, 3 threads 0 of 1024 elements differ from 1 thread
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
grep -qw avx2 /proc/cpuinfo || { echo "skipped: needs a processor with AVX2"; exit 0; }
cd -- "$folder"
apt-get download -qq libdnnl-dev=2.6.3-1 libdnnl2=2.6.3-1 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >product.cpp <<'CPP'
#include <dnnl.hpp>
#include <omp.h>
#include <cstdint>
#include <cstdio>
#include <vector>
int main() {
  using namespace dnnl;
  constexpr int m = 32, n = 32, k = 100'000;
  std::vector<float> a(m * k), b(k * n);
  std::uint32_t state = 1;
  for (auto* matrix : {&a, &b})
    for (float& x : *matrix) x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
  const engine cpu(engine::kind::cpu, 0);
  const auto plain = [](int h, int w) { return memory::desc({h, w}, memory::data_type::f32, memory::format_tag::ab); };
  const auto product = [&](int threads) {
    omp_set_num_threads(threads);
    stream s(cpu);
    std::vector<float> c(m * n);
    const matmul::primitive_desc description(matmul::desc(plain(m, k), plain(k, n), plain(m, n)), cpu);
    matmul(description).execute(s, {{DNNL_ARG_SRC, memory(plain(m, k), cpu, a.data())},
                                    {DNNL_ARG_WEIGHTS, memory(plain(k, n), cpu, b.data())},
                                    {DNNL_ARG_DST, memory(plain(m, n), cpu, c.data())}});
    s.wait();
    return std::pair(c, std::string(description.impl_info_str()));
  };
  const auto [one, name] = product(1);
  const auto differs = [&, &one = one](int threads) {
    const auto other = product(threads).first;
    int count = 0;
    for (int i = 0; i < m * n; ++i) count += one[i] != other[i];
    return count;
  };
  std::printf("%s: 2 threads %d, 1 thread again %d,", name.c_str(), differs(2), differs(1));
  std::printf(" 3 threads %d of %d elements differ from 1 thread\n", differs(3), m * n);
}
CPP
g++ -std=c++17 -O1 -fopenmp -Iusr/include product.cpp -Lusr/lib/x86_64-linux-gnu -ldnnl -o product
run() { echo "$1 $(ONEDNN_MAX_CPU_ISA=$1 OMP_DYNAMIC=false LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ./product)"; }
run AVX2 | tee seen
if grep -qw avx512bw /proc/cpuinfo; then run AVX512_CORE | tee -a seen; fi
grep -qE 'gemm:jit: 2 threads [1-9][0-9]*, 1 thread again 0, 3 threads [1-9]' seen && ! grep -qE 'brg:avx512_core: .*threads [1-9][0-9]* of' seen || { echo "the behaviour has changed" >&2; exit 1; }
