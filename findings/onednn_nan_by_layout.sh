#!/usr/bin/env bash
# oneDNN 2.6.3: what an activation makes of NaN depends on whether its tensor has gaps: exp(NaN) is inf, relu(NaN) is 0 without any.
#
# Expected: exp, the logistic function and ReLU of NaN are NaN, as in NumPy and in C's exp(), or at least the same for every layout.
# Behaviour: a dense tensor goes to the compiled kernel (jit), one whose rows have a gap behind them to the reference one (ref:any). The first
# makes exp(NaN) inf and relu(NaN) 0; the second makes logistic(NaN) 0, and the others NaN.
# Why it matters: a step that has gone wrong shows no NaN where one would be looked for, and a view of a tensor shows another result
# than its copy. A search for NaN in results finds none.
# Seen on Debian 12:
#   dense:     exp inf, logistic nan, relu 0 (jit:avx2)
#   with gaps: exp nan, logistic 0, relu nan (ref:any)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
grep -qw avx2 /proc/cpuinfo || { echo "skipped: needs a processor with AVX2"; exit 0; }
cd -- "$folder"
apt-get download -qq libdnnl-dev=2.6.3-1 libdnnl2=2.6.3-1 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
cat >nan.cpp <<'CPP'
#include <dnnl.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

int main() {
  using namespace dnnl;
  const engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  for (const int step : {2, 4}) {
    std::string line = step == 2 ? "dense:     " : "with gaps: ", implementation;
    for (const auto& [name, algorithm] : {std::pair("exp", algorithm::eltwise_exp), std::pair("logistic", algorithm::eltwise_logistic),
                                          std::pair("relu", algorithm::eltwise_relu)}) {
      std::vector<float> x(64, NAN), y(64, 7.0f);
      const memory::desc rows({16, 2}, memory::data_type::f32, memory::dims{step, 1});
      const eltwise_forward::primitive_desc description(
          eltwise_forward::desc(prop_kind::forward_inference, algorithm, rows, 0, 0), cpu);
      eltwise_forward(description).execute(s, {{DNNL_ARG_SRC, memory(rows, cpu, x.data())}, {DNNL_ARG_DST, memory(rows, cpu, y.data())}});
      s.wait();
      line += std::string(name) + " " + (std::isnan(y[0]) ? "nan" : std::isinf(y[0]) ? "inf" : std::to_string(static_cast<int>(y[0]))) + ", ";
      implementation = description.impl_info_str();
    }
    std::printf("%s (%s)\n", line.substr(0, line.size() - 2).c_str(), implementation.c_str());
  }
}
CPP
g++ -std=c++17 -O1 -Iusr/include nan.cpp -Lusr/lib/x86_64-linux-gnu -ldnnl -o nan
ONEDNN_MAX_CPU_ISA=AVX2 LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu ./nan | tee seen
[[ $(<seen) == "dense:     exp inf, logistic nan, relu 0 (jit:avx2)"$'\n'"with gaps: exp nan, logistic 0, relu nan (ref:any)" ]] ||
  { echo "the behaviour has changed" >&2; exit 1; }
