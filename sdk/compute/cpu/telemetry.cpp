#include "telemetry.hpp"

#include <assay/telemetry.h>
#include <time.h>
#include <assay/plugin.hpp>

#include <algorithm>
#include <cstring>

#include "common/parallel_jobs.hpp"
#include "rapl.hpp"

struct assay_telemetry_reader {
  double wall_s = 0, process_s = 0;  // at the sample before
  assay::cpu::RaplCounter energy;
};

namespace assay::cpu {
namespace {

compute::StatusGuard table_guard = nullptr;

double seconds_of(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0)
    throw Error(ASSAY_UNSUPPORTED,
                "the operating system does not report how much processor time the process has taken");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void read(assay_telemetry_reader& reader, assay_telemetry_moment moment, assay_telemetry_sample& out) {
  const double wall_s = seconds_of(CLOCK_MONOTONIC), process_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double span_s = wall_s - reader.wall_s;
  out.known = 0;
  out.throttle = 0;
  if (moment != ASSAY_TELEMETRY_BEGIN && span_s > 0) {
    const double share = (process_s - reader.process_s) / (span_s * compute::usable_processors());
    out.utilisation_percent = std::clamp(share * 100.0, 0.0, 100.0);  // the two clocks are read one after the other
    out.utilisation_span_s = span_s;
    out.known = ASSAY_TELEMETRY_CPU_UTILISATION;
  }
  if (const std::optional<double> energy_j = reader.energy.energy_j()) {
    out.energy_j = *energy_j;
    out.known |= ASSAY_TELEMETRY_ENERGY;
  }
  reader.wall_s = wall_s;
  reader.process_s = process_s;
}

constexpr assay_telemetry telemetry{
    sizeof(assay_telemetry),
    [](assay_device*, assay_telemetry_reader** out) noexcept {
      return compute::guarded(table_guard, [&] {
        auto reader = std::make_unique<assay_telemetry_reader>();
        assay_telemetry_sample baseline{};
        read(*reader, ASSAY_TELEMETRY_BEGIN, baseline);
        *out = reader.release();
      });
    },
    [](assay_telemetry_reader* reader) noexcept { delete reader; },
    [](assay_telemetry_reader*) noexcept { return ""; },
    [](assay_telemetry_reader*, assay_telemetry_limits* out) noexcept -> assay_status {
      return compute::guarded(table_guard, [&] {
        if (!ASSAY_HAS(out, assay_telemetry_limits, driver))
          throw Error(ASSAY_INVALID_ARGUMENT, "assay_telemetry_limits is too small; set struct_size");
        out->known = 0;
        out->driver[0] = '\0';
      });
    },
    [](assay_telemetry_reader* reader, assay_telemetry_moment moment, assay_telemetry_sample* out) noexcept {
      return compute::guarded(table_guard, [&] {
        if (!ASSAY_HAS(out, assay_telemetry_sample, foreign_memory_bytes))
          throw Error(ASSAY_INVALID_ARGUMENT, "assay_telemetry_sample is too small; set struct_size");
        read(*reader, moment, *out);
      });
    },
};

}  // namespace

const void* telemetry_extension(const char* id, compute::StatusGuard guard) noexcept {
  table_guard = guard;
  return std::strcmp(id, ASSAY_EXT_TELEMETRY) == 0 ? &telemetry : nullptr;
}

}  // namespace assay::cpu
