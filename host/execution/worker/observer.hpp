// Who watches a case while it runs: the shared board in a worker process, the terminal with --in-process.
#pragma once
#include "common/stage.hpp"
#include "measure/memory_ledger.hpp"

#include <cstdint>
#include <string_view>

namespace assay::host::worker {

// Called on the measuring thread, also inside a step: an implementation stores, and neither waits nor allocates.
class CaseObserver {
 public:
  CaseObserver() = default;
  CaseObserver(const CaseObserver&) = delete;
  CaseObserver& operator=(const CaseObserver&) = delete;
  virtual ~CaseObserver() = default;
  virtual void stage(Stage, std::int64_t /*total steps, 0: unknown*/) {}
  virtual void step(std::int64_t /*done*/) {}
  virtual void phase(std::int32_t /*index, -1: none*/) {}
  virtual void phase_named(std::int32_t /*index*/, std::string_view /*that is in no table of the plugin*/) {}
  virtual void part(std::string_view /*of setup or the verification; "": none*/) {}
  virtual void begin_wait() {}  // for another rank, or for the device; calls nest, and come from any thread
  virtual void end_wait() {}
  virtual void memory(const measure::MemoryAmounts& /*current*/, const measure::MemoryAmounts& /*peak*/) {}
  virtual void allocation(std::string_view /*what is being allocated, for the case that it ends the process*/) {}
};

// While it lives, this rank waits.
class [[nodiscard]] Waiting {
 public:
  explicit Waiting(CaseObserver& observer) : observer_(observer) { observer_.begin_wait(); }
  ~Waiting() { observer_.end_wait(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  CaseObserver& observer_;
};

}  // namespace assay::host::worker
