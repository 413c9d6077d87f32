// The fields of every struct of a record: nothing else knows a key. json_writing.cpp and json_reading.cpp go through
// the same lists.
#pragma once
#include "record/case_record.hpp"

namespace assay::host::record {

// Fields<T>::visit(field, object) calls field(key, member) for each field of T, in the order in which they are written.
// The same list serves both directions.
//
// field.measured(key, member) marks a time, or what times decide: a case that was run under a profiler which replays
// kernels has none (times.hpp). A new field that is one of these is marked here, and nowhere else.
template <class T>
struct Fields;

template <>
struct Fields<Phase> {
  static void visit(auto&& field, auto& p) {
    field("mean_ms", p.mean_ms);
    field("std_ms", p.std_ms);
    field("cv", p.cv);
    field("min_ms", p.min_ms);
    field("max_ms", p.max_ms);
    field("p50_ms", p.p50_ms);
    field("p90_ms", p.p90_ms);
    field("p95_ms", p.p95_ms);
    field("p99_ms", p.p99_ms);
    field("ci_low_ms", p.ci_low_ms);
    field("ci_high_ms", p.ci_high_ms);
    field("confidence", p.confidence);
    field("n", p.n);
    field.unless_empty("samples_ms", p.samples_ms);
    field("host_mean_ms", p.host_mean_ms);
    field("share", p.share);
    field("device_mean_ms", p.device_mean_ms);
    field("autocorrelation", p.autocorrelation);
    field("effective_n", p.effective_n);
  }
};

template <>
struct Fields<Sampling> {
  static void visit(auto&& field, auto& s) {
    field.unless_empty("rule", s.rule);
    field("settling_steps", s.settling_steps);
    field("unrecorded_steps", s.unrecorded_steps);
    field.unless_empty("mode", s.mode);
    field("inner", s.inner);
    field("cold", s.is_cold);
    field("instrument_us", s.instrument_us);
  }
};

template <>
struct Fields<StepMetric> {
  static void visit(auto&& field, auto& m) {
    field("unit", m.unit);
    field("direction", m.direction);
    field("mean", m.mean);
    field("std", m.std);
    field("min", m.min);
    field("max", m.max);
    field("last", m.last);
    field("n", m.n);
    field.unless_empty("samples", m.samples);
  }
};

template <>
struct Fields<CaseMetric> {
  static void visit(auto&& field, auto& m) {
    field.count("value", m.value);
    field("unit", m.unit);
    field("direction", m.direction);
    field("word", m.word);
  }
};

template <>
struct Fields<Work> {
  static void visit(auto&& field, auto& w) {
    field("flops", w.flops);
    field("bytes", w.bytes);
    field("items", w.items);
    field("item_unit", w.item_unit);
    field.unless_empty("arithmetic", w.arithmetic);
  }
};

template <>
struct Fields<Rates> {
  static void visit(auto&& field, auto& r) {
    field("gflop_per_s", r.gflop_per_s);
    field("gbytes_per_s", r.gbytes_per_s);
    field("items_per_s", r.items_per_s);
  }
};

template <>
struct Fields<Peak> {
  static void visit(auto&& field, auto& p) {
    field("gflop_per_s", p.gflop_per_s);
    field("gbytes_per_s", p.gbytes_per_s);
    field.unless_empty("text", p.text);
  }
};

template <>
struct Fields<SilentPass> {
  static void visit(auto&& field, auto& p) {
    field("steps", p.steps);
    field("step_mean_ms", p.step_mean_ms);
    field("communication_tax", p.communication_tax);
  }
};

template <>
struct Fields<PhasePass> {
  static void visit(auto&& field, auto& p) {
    field("steps", p.steps);
    field("step_mean_ms", p.step_mean_ms);
    field("events", p.events);
    field("event_us", p.event_us);
  }
};

template <>
struct Fields<Efficiency> {
  static void visit(auto&& field, auto& e) {
    field("stated", e.stated);
    field.measured("measured", e.measured);
    field.measured("mfu", e.mfu);
    field.measured("bound_percent", e.bound_percent);
    field.measured("mfu_measured", e.mfu_measured);
    field.measured("bound_percent_measured", e.bound_percent_measured);
    field.measured("j_per_item", e.j_per_item);
    field.measured("items_per_j", e.items_per_j);
  }
};

template <>
struct Fields<MemoryAtMoment> {
  static void visit(auto&& field, auto& m) {
    field("name", m.name);
    field("current_mib", m.current_mib);
    field("peak_mib", m.peak_mib);
    field("current_total_mib", m.current_total_mib);
    field("peak_total_mib", m.peak_total_mib);
    field("rank_spread_mib", m.rank_spread_mib);
  }
};

template <>
struct Fields<Memory> {
  static void visit(auto&& field, auto& m) {
    field("moments", m.moments);
    field("peak_mib", m.peak_mib);
    field("peak_total_mib", m.peak_total_mib);
    field("step_peak_mib", m.step_peak_mib);
    field.measured("process_peak_mib", m.process_peak_mib);
    field.measured("device_used_mib", m.device_used_mib);
    field.measured("unexplained_mib", m.unexplained_mib);
  }
};

template <>
struct Fields<VerifiedCase> {
  static void visit(auto&& field, auto& c) {
    field("index", c.index);
    field("repeat", c.repeat);
    field("hash", c.hash);
    field("status", c.status);
  }
};

template <>
struct Fields<VerificationResult> {
  static void visit(auto&& field, auto& v) {
    field("status", v.status);
    field("text", v.text);
    field.unless_empty("mode", v.mode);
    field("refers_to", v.refers_to);
  }
};

template <>
struct Fields<ProcessorShares> {
  static void visit(auto&& field, auto& c) {
    field("window_s", c.window_s);
    field("others_share", c.others_share);
    field("steal_share", c.steal_share);
    field("wait_share", c.wait_share);
    field("stall_share", c.stall_share);
    field("foreign_wait_share", c.foreign_wait_share);
    field("foreign_stall_share", c.foreign_stall_share);
    field("busy_threads", c.busy_threads);
  }
};

template <>
struct Fields<Threads> {
  static void visit(auto&& field, auto& t) {
    field("count", t.count);
    field.unless_empty("count_from", t.count_from);
    field("taken_processors", t.taken_processors);
    field.unless_empty("waiting", t.waiting);
    field("spin_count", t.spin_count);
    field("spin_us", t.spin_us);
  }
};

template <>
struct Fields<Figure> {
  static void visit(auto&& field, auto& f) {
    field("mean", f.mean);
    field("min", f.min);
    field("max", f.max);
  }
};

template <>
struct Fields<StepPeak> {
  static void visit(auto&& field, auto& p) {
    Fields<Figure>::visit(field, p);
    field.unless_empty("samples", p.samples);
  }
};

template <>
struct Fields<Telemetry> {
  static void visit(auto&& field, auto& t) {
    field("samples", t.samples);
    field("period_ms", t.period_ms);
    field("gpu_utilisation_percent", t.gpu_utilisation_percent);
    field("cpu_utilisation_percent", t.cpu_utilisation_percent);
    field("utilisation_span_s", t.utilisation_span_s);
    field.unless_empty("step_utilisation_percent", t.step_utilisation_percent);
    field("sm_clock_mhz", t.sm_clock_mhz);
    field("memory_clock_mhz", t.memory_clock_mhz);
    field("power_w", t.power_w);
    field("temperature_c", t.temperature_c);
    field("energy_j", t.energy_j);
    field("power_integral_j", t.power_integral_j);
    field("throttle", t.throttle);
    field("foreign_processes", t.foreign_processes);
    field("foreign_memory_mib", t.foreign_memory_mib);
  }
};

template <>
struct Fields<Validity> {
  static void visit(auto&& field, auto& v) {
    field("verdict", v.verdict);
    field("text", v.text);
  }
};

template <>
struct Fields<Device> {
  static void visit(auto&& field, auto& d) {
    field.unless_empty("kind", d.kind);
    field("ordinal", d.ordinal);
    field.unless_empty("name", d.name);
    field("compute_units", d.compute_units);
    field("memory_total_mib", d.memory_total_mib);
    field.unless_empty("libraries", d.libraries);
    field.unless_empty("bus_address", d.bus_address);
    field.unless_empty("uuid", d.uuid);
    field.unless_empty("driver", d.driver);
    field.unless_empty("abi", d.abi);
    field.unless_empty("build", d.build);
    field("max_sm_clock_mhz", d.max_sm_clock_mhz);
    field("max_memory_clock_mhz", d.max_memory_clock_mhz);
    field("application_sm_clock_mhz", d.application_sm_clock_mhz);
    field("application_memory_clock_mhz", d.application_memory_clock_mhz);
    field("power_limit_w", d.power_limit_w);
    field("default_power_limit_w", d.default_power_limit_w);
  }
};

template <>
struct Fields<Plugin> {
  static void visit(auto&& field, auto& p) {
    field("id", p.id);
    field("version", p.version);
    field("build", p.build);
    field("file_hash", p.file_hash);
    field.unless_empty("abi", p.abi);
  }
};

template <>
struct Fields<KernelTrace> {
  static void visit(auto&& field, auto& t) {
    field("steps", t.steps);
    field("step_ms", t.step_ms);
    field("busy_ms", t.busy_ms);
    field("in_graph", t.in_graph);
    field.unless_empty("file", t.file);
  }
};

template <>
struct Fields<KernelRow> {
  static void visit(auto&& field, auto& r) {
    field("class", r.kernel_class);
    field("name", r.name);
    field("count", r.count);
    field("time_us", r.time_us);
    field("share", r.share);
  }
};

template <>
struct Fields<CountedKernel> {
  static void visit(auto&& field, auto& k) {
    field("class", k.kernel_class);
    field("name", k.name);
    field("count", k.count);
    field("time_us", k.time_us);
    field("dram_bytes", k.dram_bytes);
    field("flops", k.flops);
    field("dram_percent", k.dram_percent);
    field("sm_percent", k.sm_percent);
    field("tensor_percent", k.tensor_percent);
    field("occupancy_percent", k.occupancy_percent);
    field.unless_empty("bound", k.bound);
  }
};

template <>
struct Fields<CounterProfile> {
  static void visit(auto&& field, auto& p) {
    field.unless_empty("version", p.version);
    field("launches", p.launches);
    field("at_limit", p.is_at_limit);
    field("table", p.table);
    field.unless_empty("file", p.file);
    field("kernels", p.kernels);
  }
};

template <>
struct Fields<RankEntry> {
  static void visit(auto&& field, auto& r) {
    field("rank", r.rank);
    field("host", r.host);
    field("device", r.device);
    field("step_mean_ms", r.step_mean_ms);
    field("step_std_ms", r.step_std_ms);
    field("step_p50_ms", r.step_p50_ms);
    field("step_min_ms", r.step_min_ms);
    field("step_max_ms", r.step_max_ms);
    field("phases", r.phases);
    field("step_metrics", r.step_metrics);
    field("metrics", r.metrics);
    field("memory_peak_mib", r.memory_peak_mib);
    field("process_peak_mib", r.process_peak_mib);
    field("telemetry", r.telemetry);
    field("validity", r.validity);
    field("status", r.status);
    field("stage", r.stage);
    field.unless_empty("phase", r.phase);
    field("step", r.step);
    field.unless_empty("reason", r.reason);
  }
};

template <>
struct Fields<Straggler> {
  static void visit(auto&& field, auto& s) {
    field("rank", s.rank);
    field("share", s.share);
  }
};

template <>
struct Fields<WallTimes> {
  static void visit(auto&& field, auto& w) {
    for (const auto& [name, time, stage] : WallTimes::all())
      if (time == &WallTimes::measure_s || time == &WallTimes::warmup_s)  // of steps, not of the case's stages
        field.measured(name, w.*time);
      else
        field(name, w.*time);
    field.unless_empty("setup_parts", w.setup_parts_s);
    field.unless_empty("verify_parts", w.verify_parts_s);
  }
};

// How a case ended. In a whole record it stands before what was to be run.
void visit_end(auto&& field, auto& r) {
  field.status(r);
  field("reason", r.reason);
  field.or_empty("stage", r.stage);
  field("phase", r.phase);
  field.unless_empty("part", r.part);
  field.or_null("rank", r.rank);
}

void visit_findings(auto&& field, auto& r) {
  field.unless_empty("libraries", r.libraries);
  field.unless_empty("algorithms", r.algorithms);
  field("notes", r.notes);
  field.unless_empty("wall_s", r.wall);
  field("work", r.work);
  field.unless_empty("memory_snapshot", r.memory_snapshot);
  field("kernel_trace", r.kernel_trace);
  field("kernels", r.kernels);
  field("ncu", r.ncu);
  field.measured("contention", r.contention);
  field.unless_empty("threads", r.threads);
  field.measured("telemetry", r.telemetry);
  field.measured("validity", r.validity);
  field("memory", r.memory);
  field("verify", r.verify);
  field.measured("phases", r.phases);
  field.measured("step_metrics", r.step_metrics);
  field.measured("sampling", r.sampling);
  field.measured("rates", r.rates);
  field("efficiency", r.efficiency);
  field.measured("silent", r.silent);
  field.measured("phase_pass", r.phase_pass);
  field.measured("drift", r.drift);
  field("metrics", r.metrics);
  field("step", r.step);
  field.unless_empty("log_tail", r.log_tail);
  field("copies", r.copies);
  field.unless_empty("by_rank", r.by_rank);
  field("straggler", r.straggler);
  field("spread", r.spread);
}

template <>
struct Fields<CaseResult> {
  static void visit(auto&& field, auto& r) {
    visit_end(field, r);
    field("device", r.device);
    visit_findings(field, r);
  }
};

template <>
struct Fields<CaseRecord> {
  static void visit(auto&& field, auto& record) {
    auto& id = record.identity;
    auto& result = record.result;
    field("index", id.index);
    field("repeat", id.repeat);
    field("hash", id.hash);
    field("axes", id.axes);
    visit_end(field, result);
    field("ranks", id.ranks);
    field("workload", id.workload);
    field("plugin", id.plugin);
    field.unless_empty("files", id.files);
    field("device", result.device);
    field("params", id.params);
    field("settings", id.settings);
    visit_findings(field, result);
    field.unless_empty("started", record.started);
    field.unless_empty("host", record.host);
    field.unless_empty("environment", record.environment);
  }
};

}  // namespace assay::host::record
