#include "worker/case_profiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "profile/kernel_study.hpp"

namespace assay::host::worker {
namespace {

constexpr std::uint64_t traced_steps = 3;
// Traced as well, but not in the table: the tracer prepares itself in the first step, and the host may then come to
// mark the step's begin after the anchor has ended.
constexpr std::uint64_t warmup_steps = 1;

// "<run folder>/kernels_case-0001.md"
std::string file_of(const CaseSpec& spec, const char* what, const char* extension) {
  return spec.file_of_run(fmt::format("{}_{}.{}", what, spec.file_stem(), extension)).string();
}

// profiler_of() and kernel_trace_of() give null where the device does not offer the extension, or offers one that was
// built before the last function that is called here.
const assay_profiler* profiler_of(const plugin::OpenDevice& device) {
  const auto* profiler = static_cast<const assay_profiler*>(device.api().get_extension(ASSAY_EXT_PROFILER));
  return profiler && ASSAY_HAS(profiler, assay_profiler, stop) ? profiler : nullptr;
}
const assay_kernel_trace* kernel_trace_of(const plugin::OpenDevice& device) {
  const auto* trace = static_cast<const assay_kernel_trace*>(device.api().get_extension(ASSAY_EXT_KERNEL_TRACE));
  return trace && ASSAY_HAS(trace, assay_kernel_trace, get) ? trace : nullptr;
}

}  // namespace

CaseProfiler::CaseProfiler(const CaseSpec& spec, const plugin::OpenDevice& device, CaseMemory& memory,
                           record::CaseResult& result)
    : is_counted_(spec.values.profile.ncu),
      is_watched_(spec.values.profile.nvtx || spec.values.profile.nsys),
      kernels_file_(spec.values.profile.kernels ? file_of(spec, "kernels", "md") : ""),
      memory_snapshot_file_(spec.values.profile.memory_snapshot ? file_of(spec, "memory", "pickle") : ""),
      device_(device),
      memory_(memory),
      result_(result),
      profiler_(is_watched_ || is_counted_ ? profiler_of(device) : nullptr) {
  if (!memory_snapshot_file_.empty()) memory.begin_history();
}

void CaseProfiler::note(std::string text) { result_.note(std::move(text)); }

bool CaseProfiler::is_done(assay_status status, const char* doing) {
  if (status != ASSAY_OK) note(fmt::format("{}: {}", doing, device_.api().error_text()));
  return status == ASSAY_OK;
}

bool CaseProfiler::write(const std::string& file, const std::string& bytes, const char* what) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) note(fmt::format("{} could not be written to {}; is the disk full?", what, file));
  return out.good();
}

void CaseProfiler::start_range() {
  if (profiler_ && !is_counted_ && device_.is_observed()) {
    profiler_ = nullptr;
    return note(
        "profile: the steps run in other processes, so the program must begin and end the profiler's range itself "
        "(cudaProfilerStart, cudaProfilerStop)");
  }
  if (profiler_ && !is_counted_ &&
      !is_done(profiler_->start(device_.handle()), "starting the external profiler's range"))
    profiler_ = nullptr;
}

void CaseProfiler::begin_measure(measure::Recorder& recorder, const std::vector<std::string>& phase_names) {
  if (!is_watched_ || !DeviceRanges::are_offered_by(device_)) return;
  ranges_.emplace(device_, phase_names).begin_measure();
  recorder.mark_ranges_by(&*ranges_);
}

void CaseProfiler::end_measure(measure::Recorder& recorder) {
  recorder.mark_ranges_by(nullptr);
  ranges_.reset();
  if (profiler_ && !is_counted_) is_done(profiler_->stop(device_.handle()), "ending the external profiler's range");
}

void CaseProfiler::count_kernels(measure::Timeline& timeline, measure::Recorder& recorder,
                                 const std::function<void(std::uint64_t step)>& run_step) {
  if (!is_counted_) return;
  if (device_.is_observed()) return note("ncu: the steps are those of other processes, whose kernels are not counted");
  if (!profiler_) return note(fmt::format("ncu: the {} device has no range for a profiler", device_.api().kind));
  assay_device* device = device_.handle();
  timeline.synchronize();
  if (!is_done(profiler_->start(device), "ncu: starting its range")) return;
  recorder.discard();
  recorder.begin_step();
  run_step(0);
  recorder.end_step();
  timeline.synchronize();
  recorder.discard();
  is_done(profiler_->stop(device), "ncu: ending its range");
}

void CaseProfiler::trace_kernels(measure::Timeline& timeline, measure::Recorder& recorder,
                                 const std::vector<std::string>& phase_names,
                                 const std::function<void(std::uint64_t step)>& run_step) {
  if (kernels_file_.empty()) return;
  if (is_counted_)
    return note(fmt::format("{}not traced under ncu, which holds the device's counters", profile::kernels_note));
  if (device_.is_observed())
    return note(fmt::format("{}the steps are those of other processes, which are not traced", profile::kernels_note));
  const auto* trace = kernel_trace_of(device_);
  if (!trace)
    return note(fmt::format("{}the {} device offers no trace of them; their table needs a GPU", profile::kernels_note,
                            device_.api().kind));
  assay_device* device = device_.handle();
  if (!is_done(trace->begin(device), "kernels: starting the trace")) return;

  std::vector<profile::TracedStep> steps;
  for (std::uint64_t step = 0; step < warmup_steps + traced_steps; ++step) {
    recorder.discard();
    if (!is_done(trace->anchor(device, device_.stream()), "kernels: marking a traced step")) break;
    recorder.begin_step();
    run_step(step);
    recorder.end_step();
    timeline.synchronize();
    steps.push_back({recorder.last_step_ns(), recorder.last_phases()});
  }
  recorder.discard();
  if (!is_done(trace->end(device), "kernels: ending the trace") || steps.size() < warmup_steps + traced_steps) return;

  std::uint64_t count = 0;
  if (!is_done(trace->count(device, &count), "kernels: reading the trace")) return;
  std::vector<profile::TracedWork> work;
  bool in_graph = false;
  for (std::uint64_t i = 0; i < count; ++i) {
    assay_traced_work one{};
    one.struct_size = sizeof one;
    if (!is_done(trace->get(device, i, &one), "kernels: reading the trace")) return;
    work.push_back({one.name, static_cast<double>(one.start_ns), static_cast<double>(one.end_ns),
                    one.kind == ASSAY_TRACED_ANCHOR, one.kind == ASSAY_TRACED_COPY || one.kind == ASSAY_TRACED_FILL});
    in_graph = in_graph || one.in_graph;
  }
  const bool placed = profile::place_work(work, steps);
  steps.erase(steps.begin(), steps.begin() + warmup_steps);
  if (!placed ||
      std::all_of(steps.begin(), steps.end(), [](const profile::TracedStep& step) { return step.work.empty(); }))
    return note(fmt::format("{}the trace is incomplete: {} records in {} steps; another profiler may hold the device",
                            profile::kernels_note, count, warmup_steps + traced_steps));
  record_table(std::move(steps), in_graph, phase_names);
}

void CaseProfiler::record_table(std::vector<profile::TracedStep> steps, bool in_graph,
                                const std::vector<std::string>& phase_names) {
  double worst_ns = 0;
  const std::size_t left_out = std::erase_if(steps, [&](const profile::TracedStep& step) {
    const double off_ns = profile::misplaced_ns(step);
    if (off_ns <= profile::clock_tolerance_ns(step.length_ns)) return false;
    worst_ns = std::max(worst_ns, off_ns);
    return true;
  });
  if (left_out > 0)
    note(
        fmt::format("{} of {} traced steps are not in the table of kernels: their work lies up to {:.0f} us outside "
                    "the step's marks, so that its phases are not known{}",
                    left_out, traced_steps, worst_ns * 1e-3, steps.empty() ? "; there is no table" : ""));
  if (steps.empty()) return;

  double last_end_ns = 0, busy_ns = 0;
  for (const profile::TracedStep& step : steps) {
    double end_ns = 0;
    for (const profile::TracedWork& work : step.work) {
      end_ns = std::max(end_ns, work.end_ns);
      busy_ns += work.end_ns - work.start_ns;
    }
    last_end_ns += end_ns;
  }
  record::Kernels kernels = profile::kernels_of(steps, phase_names);
  const double n = static_cast<double>(steps.size());
  // From a step's begin to the end of its last kernel: compared with the measured steps, what tracing costs.
  result_.kernel_trace = {static_cast<std::int64_t>(steps.size()), last_end_ns * 1e-6 / n, busy_ns * 1e-6 / n, in_graph,
                          std::filesystem::path(kernels_file_).filename().string()};
  const std::string title = fmt::format("Kernels of {} traced {} after the measured ones", steps.size(),
                                        steps.size() == 1 ? "step" : "steps");
  if (!write(kernels_file_, profile::kernel_markdown(kernels, title), "the table of kernels"))
    result_.kernel_trace->file.clear();
  result_.kernels = std::move(kernels);
}

void CaseProfiler::write_memory_snapshot() {
  const auto history = memory_.take_history();
  if (!history) return;
  if (write(memory_snapshot_file_, history->snapshot(device_.ordinal()), "the memory snapshot"))
    result_.memory_snapshot = std::filesystem::path(memory_snapshot_file_).filename().string();
}

}  // namespace assay::host::worker
