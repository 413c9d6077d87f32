#!/usr/bin/env bash
# oneDNN 2.6.3: a fp32 subnormal becomes a bf16 subnormal with AVX-512, and zero with AVX2 or with AVX-512's own bf16 instructions.
#
# Expected: bf16 has fp32's exponents, so 1e-39 (0x000ae398) rounds to the bf16 subnormal 0x000b on every processor.
# Behaviour: the reorder that AVX512_CORE takes rounds integers and gives 0x000b. AVX512_CORE_BF16 uses the processor's instruction, which
# takes subnormals for zero; the AVX2 code gives zero, too.
# Why it matters: weights and gradients below 1.2e-38 are there on one machine and gone on a newer and on an older one; a comparison of
# bf16 states between machines has to forgive them.
# Seen on Debian 12 with a processor that has AVX512_BF16:
#   AVX2 simple:any: 1e-39 is 0x0000
#   AVX512_CORE jit:uni: 1e-39 is 0x000b
#   AVX512_CORE_BF16 jit:uni: 1e-39 is 0x0000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
grep -qw avx512_bf16 /proc/cpuinfo || { echo "skipped: needs a processor with AVX512_BF16"; exit 0; }
cd -- "$folder"
apt-get download -qq libdnnl-dev=2.6.3-1 libdnnl2=2.6.3-1 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >subnormal.cpp <<'CPP'
#include <dnnl.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  std::vector<float> x(16, 1e-39f);
  std::vector<std::uint16_t> y(16, 1);
  const memory::desc fp32({16}, memory::data_type::f32, memory::format_tag::a), bf16({16}, memory::data_type::bf16, memory::format_tag::a);
  memory from(fp32, cpu, x.data()), to(bf16, cpu, y.data());
  const reorder::primitive_desc description(cpu, fp32, cpu, bf16);
  reorder(description).execute(s, from, to);
  s.wait();
  std::printf("%s: 1e-39 is 0x%04x\n", description.impl_info_str(), static_cast<unsigned>(y[0]));
}
CPP
g++ -std=c++17 -O1 -Iusr/include subnormal.cpp -Lusr/lib/x86_64-linux-gnu -ldnnl -o subnormal
for isa in AVX2 AVX512_CORE AVX512_CORE_BF16; do
  echo "$isa $(ONEDNN_MAX_CPU_ISA=$isa LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ./subnormal)"
done | tee seen
[[ $(awk '{print $NF}' seen | xargs) == "0x0000 0x000b 0x0000" ]] || { echo "the behaviour has changed" >&2; exit 1; }
