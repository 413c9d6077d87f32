// Records as the host writes them, by hand: tests change their JSON, and read it as the host does.
#pragma once
#include "record/columns.hpp"
#include "record/json.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

namespace assay::host::record {

// Lets the JSON library turn JSON into a record wherever a test gives one.
// An axis that is a parameter has the parameter's value, so that a test need change it in one place alone.
inline void from_json(const nlohmann::ordered_json& json, CaseRecord& record) {
  nlohmann::ordered_json whole = json;
  if (whole.contains("axes") && whole.contains("params"))
    for (const auto& [axis, value] : whole["axes"].items())
      if (whole["params"].contains(axis)) whole["params"][axis] = value;
  std::optional<CaseRecord> read = record_from_json(whole);
  if (!read) throw std::invalid_argument("no record: " + json.dump());
  record = std::move(*read);
}

}  // namespace assay::host::record

namespace assay::host {

using Json = nlohmann::ordered_json;

inline Json ok_record() {
  return Json::parse(R"({
    "schema": 1, "index": 0, "hash": "9f2c0a1b7d3e4f55", "axes": {"size": "small", "measure.warmup": 5},
    "status": "ok", "reason": "", "stage": "done", "phase": "", "rank": null, "workload": "decoder",
    "device": {"kind": "cpu", "ordinal": 0, "name": "AMD EPYC"},
    "params": {"size": "small", "batch_size": 4096, "lr": 0.0001, "causal": true},
    "settings": {"measure.warmup": 5, "run.seed": 1234},
    "metrics": {"parameters": {"value": 128625408.0, "unit": "", "direction": 0},
                "ratio": {"value": 0.1234567, "unit": "", "direction": 0}},
    "step_metrics": {"loss": {"unit": "", "direction": -1, "mean": 9.25, "std": 0.25, "samples": [9.5, 9.0, 9.25]}},
    "phases": {
      "step": {"mean_ms": 1243.25, "std_ms": 9.5, "cv": 0.008, "min_ms": 1230.0, "max_ms": 1260.0,
               "p50_ms": 1243.0, "p90_ms": 1250.0, "p95_ms": 1255.0, "p99_ms": 1259.0, "n": 10, "samples_ms": [1243.25],
               "host_mean_ms": 1243.5, "share": 1.0},
      "forward": {"mean_ms": 0.0123456, "std_ms": 0.5, "cv": 0.5, "n": 10},
      "backward": {"mean_ms": 800.5, "std_ms": 2.0, "cv": 0.0025, "n": 10}},
    "work": {"flops": 1, "bytes": 1, "items": 2048, "item_unit": "tokens"},
    "rates": {"gflop_per_s": 290.5, "gbytes_per_s": 12.0, "items_per_s": 1647.25},
    "memory": {
      "moments": [
        {"name": "after_setup", "current_mib": {"parameters": 490.5}, "peak_mib": {"parameters": 491.5},
         "current_total_mib": 490.5, "peak_total_mib": 500.5},
        {"name": "before_step", "current_mib": {"parameters": 1.0}, "current_total_mib": 1.0},
        {"name": "before_step", "current_mib": {"parameters": 2.0}, "current_total_mib": 3.0}],
      "peak_mib": {"parameters": 490.5, "activations": 300.25}, "peak_total_mib": 790.75,
      "step_peak_mib": {"mean": 780.5, "min": 770.25, "max": 790.75}, "process_peak_mib": 1012.25},
    "memory_snapshot": "memory_case-0001.pickle",
    "verify": {"status": "ok", "text": "loss is near"}, "drift": 0.01, "notes": ["one, with comma", "two"],
    "started": "2026-11-20T12:00:00Z", "wall_s": {"case": 3.25, "setup": 0.5, "measure": 2.5}})");
}

inline Json oom_record() {
  return Json::parse(R"({
    "schema": 1, "index": 2, "hash": "00", "axes": {"size": "xl", "measure.warmup": 5}, "status": "oom",
    "reason": "wanted 31,250 MiB\nof 24,000 MiB", "stage": "setup", "phase": "forward", "rank": 1,
    "workload": "decoder", "device": {"kind": "cpu", "name": "AMD EPYC"}, "params": {"size": "xl"},
    "settings": {}, "notes": [], "started": "2026-11-20T12:00:10Z", "wall_s": {"case": 1.5}})");
}

inline record::CaseRecord typed(const Json& json) { return json.get<record::CaseRecord>(); }
inline record::Cell cell_of(const Json& json, std::string_view column) { return record::cell_of(typed(json), column); }
// What the host makes of it: every field that it knows.
inline Json as_read(const Json& json) { return record::to_json(typed(json)); }

}  // namespace assay::host
