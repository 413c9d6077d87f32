// Any program as a workload: it reports its steps over a descriptor, or is one step by itself.
#pragma once
#include <assay/plugin.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace command {

class Workload {
 public:
  static constexpr auto id = "command";
  static constexpr auto summary = "any program: the steps, phases and metrics that it reports, or its time as a whole";
  static constexpr auto params = command::params;
  static constexpr auto waited = assay::Metric::word("waited", waitings)
                                     .help("what assay did, and asked of the program, until the other one reported");
  static constexpr auto metrics = assay::table(waited);
  static constexpr auto item_unit = "items";
  static constexpr bool ranks_cooperate = true;
  static constexpr bool is_open = true;
  static constexpr bool steps_elsewhere = true;

  explicit Workload(const assay::Case& c);
  void setup(const assay::LaunchOf<Workload>& launch);
  void run(const assay::Launch& launch);
  assay::Account account(const assay::Launch&) { return {.steps = ended_steps_}; }
  assay::Verified verify(const assay::Launch& launch);
  assay::Work work() const { return {.items = settings_.items_per_step}; }
  void plan(const assay::Planning& planning) const;

 private:
  void start();
  Waiting settled_waiting() const;
  // Hears the program until it asks for a step (true) or ends (false).
  bool hear(const assay::Launch& launch, bool in_step);
  void take(const Report& report, const assay::Launch& launch, bool in_step);
  void take_figure(const Report& report, const assay::Launch& launch);
  void run_whole(const assay::Launch& launch);
  [[noreturn]] void fail(const std::string& text) const;
  [[noreturn]] void fail_by_its_end(const assay::Launch& launch) const;

  assay::Host host_;
  const assay_names* names_;
  Settings settings_;
  bool has_gpu_;
  Waiting waiting_ = Waiting::asleep;
  std::function<bool()> is_to_end_;
  std::unique_ptr<Program> program_;
  std::uint64_t starts_ = 0;
  bool has_greeted_ = false, has_asked_ = false;
  struct Figure {
    std::uint32_t index;
    bool is_of_step;
    std::string unit;
    assay_direction better;
  };
  std::map<std::string, std::uint32_t> phases_;
  std::map<std::string, Figure> figures_;
  std::vector<std::string> open_phases_;
  struct LastValue {
    double value = 0;
    std::uint64_t step = 0;  // the measured one that reported it, from 1; 0: a result
  };
  std::map<std::string, LastValue> last_values_;  // of the metrics of measured steps, and of results
  std::uint64_t measured_steps_ = 0;
  // Steps that the program itself has ended: by asking for the next one, or with the whole of its run. What it did in
  // them, nobody but the program knows.
  std::uint64_t ended_steps_ = 0;
};

}  // namespace command
