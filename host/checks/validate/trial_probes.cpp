#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "validate/probe_parts.hpp"
#include "validate/probes.hpp"

namespace assay::host::validate {

// Each has a separate host, as in two cases: what ranks say to each other has its names.
void pair_probe(const Subject& subject, const Asker& asker) {
  Stage stage(subject), beside(subject);
  stage.init();
  asker.ask(Check::objects_two);
  Life first(stage), second(beside);
  const auto outcome_of = [&](const char* what, const Outcome& outcome) {
    if (is_failure(outcome)) asker.find(Check::objects_two, fmt::format("{}: {}", what, outcome.in_words()));
    return outcome.is_ok();
  };
  asker.at("the first object, by itself");
  if (!begins(first, 1)) return;
  asker.at("set-up of a second object beside the first");
  if (!outcome_of("create of a second object", second.create()) || !second.is_there() ||
      !outcome_of("setup of a second object", second.setup()))
    return;
  for (int i = 0; i < 2; ++i) {
    asker.at("steps of the two in turns");
    outcome_of("a step of the first object", first.step(ASSAY_STAGE_MEASURE));
    outcome_of("a step of the second object", second.step(ASSAY_STAGE_MEASURE));
  }
  asker.at("destroying the second object");
  if (stage.workload().verify) outcome_of("verify of the second object", second.verify());
  second.destroy();
  asker.at("the first object, after the second was destroyed");
  outcome_of("a step of the first object, after the second was destroyed", first.step(ASSAY_STAGE_MEASURE));
  if (stage.workload().verify) outcome_of("verify of the first object", first.verify());
  first.destroy();
}

void refusal_probe(const Subject& subject, const Asker& asker) {
  constexpr std::size_t most_refused = 8;  // of more, some of each part
  Stage stage(subject);
  stage.init();
  std::size_t count = 0;
  {
    Life life(stage);
    if (!life.create().is_ok() || !life.is_there() || !life.setup().is_ok()) return;
    count = stage.host().counts().allocations;
  }
  if (count == 0) {
    for (const Check check : {Check::memory_refused, Check::memory_given_back})
      asker.leave_out(check, "the workload takes no memory from the host in setup");
    return;
  }
  const std::size_t stride = (count + most_refused - 1) / most_refused;
  for (std::size_t i = 0; i < count; i += stride) {
    stage.begin_anew();
    stage.host().refuse(i);
    asker.ask(Check::memory_refused);
    const std::string place = fmt::format("allocation {} of {} refused", i + 1, count);
    asker.at(place);
    Life life(stage);
    Outcome outcome = life.create();
    if (outcome.is_ok() && life.is_there()) outcome = life.setup();
    if (outcome.is_ok()) {  // it does without: then it must do so
      const Outcome step = life.step(ASSAY_STAGE_WARMUP);
      const Outcome verified = step.is_ok() && stage.workload().verify ? life.verify() : step;
      if (is_failure(verified))
        asker.find(Check::memory_refused, fmt::format("{}: setup succeeds, and then: {}", place, verified.in_words()));
    } else if (outcome.status != ASSAY_OUT_OF_MEMORY || outcome.text.empty()) {
      asker.find(Check::memory_refused, fmt::format("{}: {}; expected ASSAY_OUT_OF_MEMORY", place, outcome.in_words()));
    }
    asker.ask(Check::memory_given_back);
    asker.at(place);
    life.destroy();
    if (const std::size_t left = stage.services().memory().blocks_left(); left > 0)
      asker.find(Check::memory_given_back, fmt::format("{}: {} blocks are left", place, left));
  }
}

namespace {

enum class Change { larger_by_half, no_number };

// Every number that is one as a float, and neither 0 nor tiny, becomes another one, or none at all (whatever the
// format: all bits set is NaN in each). Small integers are tiny as floats: indices stay as they are, so that nothing
// reads where nothing is.
void change(const std::vector<CountingHost::Block>& blocks, Change how) {
  for (const CountingHost::Block& block : blocks) {
    auto* const bytes = static_cast<unsigned char*>(block.address);
    for (std::size_t at = 0; at + sizeof(float) <= block.bytes; at += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, bytes + at, sizeof number);
      if (!(std::abs(number) > 1e-30f && std::abs(number) < 1e30f)) continue;
      number *= 1.5f;
      if (how == Change::larger_by_half)
        std::memcpy(bytes + at, &number, sizeof number);
      else
        std::memset(bytes + at, 0xFF, sizeof number);
    }
  }
}

}  // namespace

void change_probe(const Subject& subject, const Asker& asker) {
  Stage stage(subject);
  stage.init();
  if (!stage.workload().verify) return asker.leave_out(Check::verify_finds, "the workload has no verification");
  if (subject.spec.device_kind != "cpu")
    return asker.leave_out(Check::verify_finds, "the memory of this device is not the host's to change");
  // Before the verification, and, for one that begins from its own state, in the middle of it.
  struct Trial {
    Change change;
    std::optional<std::size_t> mark;
  };
  constexpr Trial trials[] = {{Change::larger_by_half, std::nullopt},
                              {Change::no_number, std::nullopt},
                              {Change::larger_by_half, 0},
                              {Change::larger_by_half, 1},
                              {Change::larger_by_half, 3},
                              {Change::larger_by_half, 7}};
  std::size_t changed_bytes = 0;
  for (const Trial& trial : trials) {
    stage.begin_anew();
    Life life(stage);
    if (!begins(life, 2) || !life.finish().is_ok()) return;
    const std::vector<CountingHost::Block> blocks = stage.host().blocks();
    if (blocks.empty()) return asker.leave_out(Check::verify_finds, "the workload takes no memory from the host");
    changed_bytes = 0;
    for (const CountingHost::Block& block : blocks) changed_bytes += block.bytes;
    asker.ask(Check::verify_finds);
    asker.at(trial.mark ? fmt::format("memory changed at mark {} of verify", *trial.mark + 1)
                        : "memory changed before");
    bool has_changed = false;
    const auto act = [&] { change(stage.host().blocks(), trial.change), has_changed = true; };
    if (trial.mark)
      stage.host().at_mark(*trial.mark, act);
    else
      act();
    const Outcome outcome = life.verify();
    if (is_failure(outcome) || outcome.status == ASSAY_UNSUPPORTED) return;
    if (!has_changed) break;  // no mark comes so late
  }
  asker.find(
      Check::verify_finds,
      fmt::format(
          "verify passed although every number in {} bytes of its memory was larger by half, and although each was NaN",
          changed_bytes));
}

void repeat_probe(const Subject& subject, const Asker& asker) {
  const auto is_of_time = [](const plugin::MetricSpec& metric) {
    const std::string& unit = metric.unit;
    return unit == "s" || unit == "ms" || unit == "us" || unit == "ns" || unit == "%" ||
           unit.find('/') != std::string::npos;
  };
  const std::vector<plugin::MetricSpec>& metrics = subject.schema.metrics;
  if (std::none_of(metrics.begin(), metrics.end(),
                   [&](const plugin::MetricSpec& m) { return m.per_step && !is_of_time(m); }))
    return asker.leave_out(Check::seed_same, "the workload has no metric of a step but times and rates");
  Stage stage(subject);
  stage.init();
  std::vector<std::vector<double>> first;
  for (int i = 0; i < 2; ++i) {
    stage.begin_anew();
    Life life(stage);
    if (!begins(life, 1 + measured_steps)) return;
    asker.ask(Check::seed_same);
    const std::vector<std::vector<double>> found = stage.recorder().take().metrics;
    if (i == 0) {
      first = found;
      continue;
    }
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      if (!metrics[m].per_step || is_of_time(metrics[m]) || first[m].size() != found[m].size()) continue;
      for (std::size_t step = 0; step < found[m].size(); ++step)
        if (std::memcmp(&first[m][step], &found[m][step], sizeof(double)) != 0)
          asker.find(Check::seed_same, fmt::format("the metric '{}' of step {} is {}, and in a second life {}",
                                                   metrics[m].name, step + 1, first[m][step], found[m][step]));
    }
  }
}

}  // namespace assay::host::validate
