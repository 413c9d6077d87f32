// The encoder_decoder workload's parameter table, and what one case makes of it.
#pragma once
#include <array>
#include <assay/data/loader.hpp>
#include <assay/data/shards.hpp>
#include <assay/models/attention_params.hpp>
#include <assay/models/encoder_decoder_trainer.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/optimizer_params.hpp>
#include <assay/workload/execution.hpp>
#include <assay/workload/precision.hpp>
#include <string>
#include <string_view>
#include <tuple>

namespace encoder_decoder {

enum class Unit { epoch, step };
enum class Amp { automatic, fp16, bf16, off };
enum class Dataset { quick, full };

// Says where the samples come from.
struct DataSettings {
  assay::data::DatasetParameters dataset;
  assay::data::LoaderConfig loader;
  std::string folder;  // "": made on the fly
};

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::EncoderDecoderTrainerConfig trainer;
  DataSettings data;
  assay::parallel::CommunicationSettings communication;
  std::string_view precision;  // one of assay::workload::precision_names, static
  Unit unit = Unit::epoch;
  std::int64_t ranks = 1;
};

struct Size {
  const char* name;
  std::int64_t d_model, heads, layers, d_ff, sequence_length, batch_size;  // layers: of each of the two stacks
};
// The last one's sequence and batch are those of the benchmark that named these sizes.
inline constexpr std::array<Size, 4> sizes{{{"3.5M", 128, 4, 3, 512, 256, 128},
                                            {"60M", 512, 8, 6, 2048, 256, 128},
                                            {"220M", 768, 12, 12, 3072, 256, 64},
                                            {"2.9B", 2048, 32, 24, 8192, 512, 8}}};
inline constexpr auto preset_names = std::apply([](const auto&... size) { return assay::names(size.name...); }, sizes);
inline constexpr auto amps =
    assay::choices<Amp>({{"auto", Amp::automatic}, {"fp16", Amp::fp16}, {"bf16", Amp::bf16}, {"off", Amp::off}});
inline constexpr auto units = assay::choices<Unit>({{"epoch", Unit::epoch}, {"step", Unit::step}});
inline constexpr auto datasets = assay::choices<Dataset>({{"quick", Dataset::quick}, {"full", Dataset::full}});

// What `preset` and `amp = "auto"` stand for.
inline constexpr auto presets = [] {
  using assay::Preset;
  std::array<Preset, 7 * sizes.size() + 2> rows{};
  std::size_t i = 0;
  for (const Size& size : sizes) {
    const auto dimension = [&](const char* param, std::int64_t value) {
      rows[i++] = Preset::integer("preset", size.name, param, value);
    };
    dimension("d_model", size.d_model);
    dimension("heads", size.heads);
    dimension("encoder_layers", size.layers);
    dimension("decoder_layers", size.layers);
    dimension("d_ff", size.d_ff);
    dimension("sequence_length", size.sequence_length);
    dimension("batch_size", size.batch_size);
  }
  rows[i++] = Preset::text("amp", "auto", "amp", "fp16").on("cuda");
  rows[i++] = Preset::text("amp", "auto", "amp", "off").on("cpu");
  return rows;
}();

using assay::Param;
inline constexpr auto params = assay::join(
    assay::table(
        Param::choice("preset", "3.5M", preset_names).help("model size; its dimensions are overridden one by one"),
        Param::integer("d_model", 0).at_least(0).at_most(1 << 20).help("width of the model; absent: as preset says"),
        Param::integer("heads", 0)
            .at_least(0)
            .at_most(4096)
            .help("attention heads, a divisor of d_model; absent: as preset says"),
        Param::integer("encoder_layers", 0).at_least(0).at_most(4096).help("encoder layers; absent: as preset says"),
        Param::integer("decoder_layers", 0).at_least(0).at_most(4096).help("decoder layers; absent: as preset says"),
        Param::integer("d_ff", 0).at_least(0).at_most(1 << 22).help(
            "width of the feed-forward; absent: as preset says"),
        Param::integer("sequence_length", 0)
            .at_least(0)
            .at_most(1 << 20)
            .unit("tokens")
            .help("tokens of a source, and of a target; absent: as preset says"),
        Param::integer("batch_size", 0)
            .at_least(0)
            .at_most(1 << 20)
            .unit("samples")
            .help("samples in a step, on each rank; absent: as preset says"),
        Param::integer("vocab_size", 8192)
            .at_least(2)
            .at_most(1 << 24)
            .unit("tokens")
            .help("vocabulary, shared by source and target"),
        Param::real("dropout", 0.1)
            .at_least(0)
            .at_most(0.9)
            .help("share of elements that are dropped, as in nn.Transformer"),
        Param::choice("amp", Amp::automatic, amps)
            .help("mixed precision. fp16: with dynamic loss scaling (cuda); bf16; off: fp32; auto: fp16 on cuda, off "
                  "on the cpu"),
        Param::choice("execution", assay::workload::Execution::graph, assay::workload::executions)
            .help("eager: one operation at a time, unfused; graph: fused operations, on CUDA captured as one graph, "
                  "collectives included"),
        Param::choice("unit", Unit::epoch, units).help("what is measured: one pass over the samples, or one batch"),
        Param::choice("dataset", Dataset::quick, datasets)
            .help("how many samples: quick: 10,240; full: about 30 GB of them"),
        Param::integer("num_samples", 0).at_least(0).help("samples of all ranks in an epoch; 0: as dataset says"),
        Param::text("data_dir", "")
            .help("folder of sharded samples on disk, relative to where the host runs, made if empty; \"\": samples "
                  "are made in memory"),
        Param::integer("num_shards", 0)
            .at_least(0)
            .at_most(10'000)
            .help("files of a data set on disk; 0: about 128 MB each"),
        Param::integer("workers", 2).at_least(1).at_most(256).help("threads that read samples, on each rank"),
        Param::integer("prefetch", 4).at_least(1).at_most(1024).unit("batches").help("batches read ahead"),
        Param::boolean("shuffle", true).help("another order of the samples in each epoch")),
    assay::models::attention_params, assay::train::elementwise_optimizer_params, assay::parallel::communication_params,
    assay::table(
        Param::input_path("weights").help("safetensors file to start from; empty: random weights from the seed")));

}  // namespace encoder_decoder
