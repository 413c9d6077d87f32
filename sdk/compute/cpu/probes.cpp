#include "probes.hpp"

#include <omp.h>
#include <dnnl.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "common/probe_parts.hpp"

namespace assay::cpu {
namespace {

compute::StatusGuard probe_guard = nullptr;

// An event is a reading of the clock.
void probe_events(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "event");
  std::vector<double> gaps_ns;
  for (int i = 0; i < 1000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto end = std::chrono::steady_clock::now();
    gaps_ns.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
  }
  found.number("least_gap_us", *std::min_element(gaps_ns.begin(), gaps_ns.end()) * 1e-3);
  found.number("gap_us", compute::median(gaps_ns) * 1e-3);
  found.number("resolution_ns", compute::resolution_ns(gaps_ns));
}

double team_start_us(std::chrono::milliseconds idle, int times) {
  std::vector<double> times_us;
  for (int i = 0; i < times; ++i) {
    if (idle.count() > 0) std::this_thread::sleep_for(idle);
    times_us.push_back(compute::microseconds_of([] {
#pragma omp parallel
      { asm volatile("" ::: "memory"); }
    }));
  }
  return compute::median(times_us);
}

void probe_team(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "team");
  team_start_us(std::chrono::milliseconds(0), 100);
  found.number("threads", omp_get_max_threads());
  found.number("start_us", team_start_us(std::chrono::milliseconds(0), 1000));
  found.number("start_after_10ms_us", team_start_us(std::chrono::milliseconds(10), 20));
}

void probe_copies(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "rate");
  constexpr std::int64_t bytes = std::int64_t{256} << 20;
  std::vector<char> from(static_cast<std::size_t>(bytes), 1), to(static_cast<std::size_t>(bytes), 2);
  double least_us = 0;
  for (int i = 0; i < 3; ++i) {
    const double us = compute::microseconds_of([&] {
#pragma omp parallel
      {
        const std::int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const std::int64_t begin = bytes * thread / threads, end = bytes * (thread + 1) / threads;
        std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
      }
    });
    if (i == 0 || us < least_us) least_us = us;
  }
  found.number("copy_gbytes_per_s", 2.0 * static_cast<double>(bytes) / (least_us * 1e3));
}

// TFLOP/s of oneDNN's product of two square matrices of these numbers.
double rate_of_product(const std::vector<float>& numbers, std::int64_t width) {
  std::vector<float> result(numbers.size());
  double least_us = 0;
  for (int i = 0; i < 6; ++i) {
    const double us = compute::microseconds_of([&] {
      dnnl::sgemm('N', 'N', width, width, width, 1.0F, numbers.data(), width, numbers.data(), width, 0.0F,
                  result.data(), width);
    });
    if (i == 1 || (i > 1 && us < least_us)) least_us = us;  // the first makes the kernel
  }
  const auto side = static_cast<double>(width);
  return 2 * side * side * side / least_us * 1e-6;
}

void probe_products(assay_device&, const assay_probe_sink& sink) {
  const compute::ProbeFindings found(sink, "rate");
  constexpr std::int64_t width = 512;
  std::vector<float> numbers(static_cast<std::size_t>(width * width));
  found.number("fp32_zeros_tflop_per_s", rate_of_product(numbers, width));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& number : numbers) number = normal(random);
  found.number("fp32_normal_tflop_per_s", rate_of_product(numbers, width));
  for (float& number : numbers) number *= 1e-39F;
  found.number("fp32_subnormal_tflop_per_s", rate_of_product(numbers, width));
}

constexpr std::array<compute::NamedProbe, 4> probes{
    {{"events", probe_events}, {"team", probe_team}, {"copies", probe_copies}, {"products", probe_products}}};

constexpr assay_probe probe{
    sizeof(assay_probe),
    compute::text_of_names<probes>.data(),
    [](assay_device* device, const char* name, const assay_probe_sink* sink) noexcept {
      return compute::guarded(probe_guard, [&] { compute::run_probe(probes, *device, name, sink); });
    },
};

}  // namespace

const void* probe_extension(const char* id, compute::StatusGuard guard) noexcept {
  probe_guard = guard;
  return std::strcmp(id, ASSAY_EXT_PROBE) == 0 ? &probe : nullptr;
}

}  // namespace assay::cpu
