// The mark by which the clock of events and the clock of the kernel trace meet: see assay/profiling.h.
#include "cuda/cuda_error.hpp"
#include "cuda/profiling.hpp"

namespace {

// Longer than the host needs to enqueue an event and the begin of a step behind it, even if each launch is traced. Then
// the event happens right at the kernel's end, and not when the host comes round to it. The tracer's own preparation in
// the first step it sees takes longer still, several milliseconds: do not use that step.
constexpr unsigned long long hold_ns = 1'000'000;

__device__ unsigned long long now_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

}  // namespace

extern "C" __global__ void assay_trace_anchor(unsigned long long wait_ns) {
  const unsigned long long begin_ns = now_ns();
  while (now_ns() - begin_ns < wait_ns) {
  }
}

namespace assay::cuda {

void launch_trace_anchor(cudaStream_t stream) {
  assay_trace_anchor<<<1, 1, 0, stream>>>(hold_ns);
  check_launch("mark a traced step");
}

}  // namespace assay::cuda
