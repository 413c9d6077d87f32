#!/usr/bin/env bash
# oneDNN 2.6.3: the list of a product's implementations repeats those that the process has made before.
#
# Expected: next_impl() walks the same implementations in the same order each time, so that the n-th is always the same one.
# Behaviour: once a primitive of the first is made, a list of the same product has the first several times (it is found in the primitive
# cache and does not move the walk on), and the others come later. Without the cache (ONEDNN_PRIMITIVE_CACHE_CAPACITY=0) it does not happen.
# 3.7.2 (Debian 13) does the same.
# Why it matters: who lists implementations, times each by its place and makes the best gets another one, and times one kernel against
# itself. assay finds them by name (sdk/compute/cpu/matmul_candidates.cpp).
# Seen on Debian 12 with a processor that has AVX-512:
#   cache: brg:avx512_core, gemm:jit; once the first was made: brg:avx512_core, brg:avx512_core, gemm:jit
#   no cache: brg:avx512_core, gemm:jit; once the first was made: brg:avx512_core, gemm:jit
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
grep -qw avx2 /proc/cpuinfo || { echo "skipped: needs a processor with AVX2"; exit 0; }
cd -- "$folder"
apt-get download -qq libdnnl-dev=2.6.3-1 libdnnl2=2.6.3-1 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >list.cpp <<'CPP'
#include <dnnl.hpp>
#include <cstdio>
#include <string>
int main() {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  const memory::desc square({512, 512}, memory::data_type::f32, memory::format_tag::ab);
  const matmul::desc product(square, square, square);
  const auto list = [&] {
    matmul::primitive_desc implementation(product, cpu);
    std::string names;
    do {
      const std::string name = implementation.impl_info_str();
      if (name.rfind("ref", 0) != 0) names += (names.empty() ? "" : ", ") + name;
    } while (implementation.next_impl());
    return names;
  };
  const std::string before = list();
  const matmul made{matmul::primitive_desc(product, cpu)};
  const std::string after = list();
  std::printf("%s; once the first was made: %s\n", before.c_str(), after.c_str());
  return before == after ? 0 : 3;
}
CPP
g++ -std=c++17 -O1 -Iusr/include list.cpp -Lusr/lib/x86_64-linux-gnu -ldnnl -o list
# Ends with 3 where the lists differ.
run() {
  local status=0
  LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ONEDNN_PRIMITIVE_CACHE_CAPACITY=$2 ./list >seen || status=$?
  echo "$1: $(cat seen)"
  [[ $status == "$3" ]] || { echo "the behaviour has changed" >&2; exit 1; }
}
run cache 1024 3
run "no cache" 0 0
