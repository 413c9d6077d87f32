// Named ranges around steps and phases, for a profiler that watches from outside. An interface, so that the recorder is
// tested against one that writes them down.
#pragma once
#include <cstdint>

namespace assay::host::measure {

// Called inside a step: an implementation neither waits nor allocates. Ranges nest; `end` ends the innermost one.
class StepRanges {
 public:
  StepRanges() = default;
  StepRanges(const StepRanges&) = delete;
  StepRanges& operator=(const StepRanges&) = delete;
  virtual ~StepRanges() = default;

  virtual void begin_step() = 0;
  virtual void begin_phase(std::uint32_t phase) = 0;
  virtual void end() = 0;
};

}  // namespace assay::host::measure
