#include "experiment/columns.hpp"
#include "record/columns.hpp"

#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

TEST(Columns, AreWhatARecordCanFill) {
  const auto names = column_names(demo_schema());
  for (const char* column : {"status",
                             "reason",
                             "index",
                             "hash",
                             "verify",
                             "drift",
                             "notes",
                             "size",
                             "batch_size",
                             "measure.warmup",
                             "run.device",
                             "parameters",
                             "loss.mean",
                             "loss.last",
                             "step.mean_ms",
                             "forward.p99_ms",
                             "forward.p95_ms",
                             "backward.cv_percent",
                             "step.host_mean_ms",
                             "forward.share",
                             "step.n",
                             "gflop_per_s",
                             "tflop_per_s",
                             "gbytes_per_s",
                             "items_per_s",
                             "tokens_per_s",
                             "memory.peak_mib",
                             "memory.process_peak_mib",
                             "memory.optimizer_state.peak_mib",
                             "memory.before_step.mib",
                             "memory.before_step.activations.mib",
                             "memory.before_step.other.mib",
                             "memory.after_forward.since.before_step.mib",
                             "memory.step_peak.mean_mib",
                             "memory.step_peak.max_mib",
                             "memory_snapshot",
                             "forward+backward.mean_ms",
                             "forward+backward.mean_s",
                             "forward+backward.share",
                             "device",
                             "device.name",
                             "wall_s.setup",
                             "rank",
                             "ranks",
                             "spread",
                             "straggler.rank",
                             "straggler.share",
                             "by_rank.step_mean_ms.min",
                             "by_rank.step_mean_ms.max"})
    EXPECT_TRUE(record::is_column(column, names)) << column;
}

TEST(Columns, RefuseWhatNoRecordHas) {
  const auto names = column_names(demo_schema());
  for (const char* column : {"",
                             "sizes",
                             "loss",
                             "parameters.mean",
                             "forward",
                             "forward.mean",
                             "optimizer.mean_ms",
                             "images_per_s",
                             "memory.",
                             "memory..mib",
                             "memory.mib",
                             "memory.weights.peak_mib",
                             "memory.before_step.weights.mib",
                             "memory..parameters.mib",
                             "measure.warmpu",
                             "device.kind",
                             "straggler",
                             "by_rank.step_mean_ms",
                             "by_rank.step_std_ms.min",
                             "memory.before_step.other.peak_mib",
                             "memory.since.before_step.mib",
                             "memory..since.before_step.mib",
                             "memory.after_forward.since..mib",
                             "memory.after_forward.since.before_step.peak_mib",
                             "forward+backward.std_ms",
                             "forward+.mean_ms",
                             "+.mean_ms",
                             "forward+loss.mean",
                             "forward+optimizer.mean_ms",
                             "forward+forward.mean_ms",
                             "step+forward.mean_ms"})
    EXPECT_FALSE(record::is_column(column, names)) << column;
}

TEST(Columns, OfAWorkloadThatCountsNothingHaveNoItemRate) {
  auto schema = demo_schema();
  schema.item_unit.clear();
  EXPECT_FALSE(record::is_column("_per_s", column_names(schema)));
  EXPECT_TRUE(record::is_column("items_per_s", column_names(schema)));
}

TEST(Columns, OfTelemetryAreKnown) {
  const std::vector<std::string> names = column_names(demo_schema());
  for (const char* column :
       {"utilisation_percent", "validity", "validity.text", "telemetry.gpu_utilisation_percent.mean",
        "telemetry.cpu_utilisation_percent.max", "telemetry.sm_clock_mhz.min", "telemetry.energy_j",
        "telemetry.throttle", "telemetry.foreign_processes"})
    EXPECT_TRUE(record::is_column(column, names)) << column;
  for (const char* column : {"telemetry", "telemetry.power_w", "telemetry.gpu_utilisation_percent.std"})
    EXPECT_FALSE(record::is_column(column, names)) << column;
}

TEST(Columns, OfAMetricOfTheStepsSayWhichOfItsStatistics) {
  const std::string statistics = "a metric of the steps; expected one of its statistics, as \"loss.mean\": loss.mean, ";
  const auto plain = lines(parse(experiment_text("[output]\ncolumns = [\"loss\"]\n")));
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_NE(plain[0].find("[output] columns has \"loss\", which is " + statistics), std::string::npos) << plain[0];
  const auto ratio = lines(parse(experiment_text(
      "[output]\ncolumns = [\"loss.ratio\"]\nrelative_to = { size = \"small\" }\n[sweep]\nsize = [\"small\"]\n")));
  ASSERT_EQ(ratio.size(), 1u);
  EXPECT_NE(ratio[0].find("[output] columns has \"loss.ratio\", but \"loss\" is " + statistics), std::string::npos)
      << ratio[0];
}

}  // namespace
}  // namespace assay::host::experiment::test
