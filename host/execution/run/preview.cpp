#include "run/preview.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launch/signals.hpp"
#include "run/found_device.hpp"
#include "run/plan_basis.hpp"
#include "run/resumption.hpp"
#include "run/scratch_folder.hpp"

namespace assay::host::run {
Preview preview_resumption(const experiment::Experiment& experiment, const RunTarget& target,
                           const RunOptions& options) {
  Preview preview;
  preview.cases.resize(experiment.cases.size());
  const auto earlier = find_earlier_run(experiment, suffix_of_part(options.part));
  if (!earlier) return preview;
  if (!earlier->differences.empty()) {
    if (!options.start_new) throw ResumeRefused(refusal_text(*earlier));
    return preview;
  }
  preview.run_folder = earlier->folder.string();
  preview.passed_over = note_on_passed_over(*earlier);

  const launch::InterruptHandler interrupts;
  const ScratchFolder scratch;
  TakenFiles files(target, std::nullopt);
  const std::vector<std::string> allow = run_wide_settings(experiment).allow;
  PlanBasis basis = plan_basis(target, files, options.launched, options.in_process, *interrupts.count());
  basis.finished = finished_cases(earlier->records, allow, options.any_machine, experiment.output.verify);
  basis.ask_device = [&](const std::string& wanted) {
    return ask_for_device(wanted, files.take_devices(wanted), scratch.path() / "devices.log", interrupts);
  };
  const RunPlan plan = make_plan(experiment, basis);
  for (std::size_t i = 0; i < plan.cases.size(); ++i)
    if (plan.cases[i].is_finished) preview.cases[i].state = PreviewedCase::State::done;
  for (const OutdatedCase& each :
       outdated_cases(plan, earlier->records, {allow, options.any_machine, basis.files_of, experiment.output.verify}))
    if (each.planned)
      preview.cases[static_cast<std::size_t>(each.planned - plan.cases.data())] = {
          PreviewedCase::State::again, fmt::format("{}", fmt::join(each.changes, "; "))};
  return preview;
}

}  // namespace assay::host::run
