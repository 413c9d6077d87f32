#include "worker/worker_process.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "launch/worker_channel.hpp"
#include "worker/case_runner.hpp"
#include "worker/device_probe.hpp"
#include "worker/rank_services.hpp"

namespace assay::host::worker {
namespace {

// Everything the observer hears goes to the shared board.
class BoardObserver final : public CaseObserver {
 public:
  explicit BoardObserver(launch::ProgressBoard& board) : board_(board) {}
  void stage(Stage stage, std::int64_t total_steps) override {
    board_.enter(stage, static_cast<std::uint64_t>(total_steps));
  }
  void step(std::int64_t done) override { board_.set_step(static_cast<std::uint64_t>(done)); }
  void phase(std::int32_t index) override { board_.set_phase(index); }
  void phase_named(std::int32_t index, std::string_view name) override { board_.set_phase_name(index, name); }
  void part(std::string_view name) override { board_.set_part(name); }
  void begin_wait() override { board_.begin_wait(); }
  void end_wait() override { board_.end_wait(); }
  void memory(const measure::MemoryAmounts& current, const measure::MemoryAmounts& peak) override {
    for (std::size_t k = 0; k < memory_kind_count; ++k)
      board_.set_memory(k, static_cast<std::uint64_t>(current.bytes[k]), static_cast<std::uint64_t>(peak.bytes[k]));
  }
  void allocation(std::string_view text) override { board_.set_last_allocation(text); }

 private:
  launch::ProgressBoard& board_;
};

}  // namespace

int worker_main() try {
  launch::WorkerChannel channel;
  const nlohmann::json spec = nlohmann::json::parse(channel.read_spec());
  if (const auto wanted_device = probe_from_json(spec)) {
    channel.send(to_event(probe_device(*wanted_device)));
  } else {
    BoardObserver observer(channel.board());
    const CaseSpec case_spec = case_spec_from_json(spec);
    if (!case_spec.is_alone()) take_termination_as_abort();
    channel.send(to_event(
        run_case(case_spec, observer, [&channel](const CaseAnswer& answer) { channel.send(to_event(answer)); })));
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "assay worker: %s\n", e.what());
  return 1;
}

}  // namespace assay::host::worker
