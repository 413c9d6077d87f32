#include "training_data.hpp"

namespace encoder_decoder {
namespace {

constexpr std::uint64_t bytes_in_mb = 1'000'000;

std::unique_ptr<assay::data::SampleSource> open(const assay::Host& host, const DataSettings& settings) {
  const assay::data::DatasetParameters& dataset = settings.dataset;
  if (settings.folder.empty())
    return std::make_unique<assay::data::SyntheticSamples>(dataset.shape, dataset.samples, dataset.seed);
  auto shards = assay::data::ShardedSamples::open_or_generate(
      settings.folder, dataset, [&](std::uint64_t done, std::uint64_t total) {
        assay::report_progress(host, static_cast<std::int64_t>(done / bytes_in_mb),
                               static_cast<std::int64_t>(total / bytes_in_mb));
      });
  host.info(settings.folder + (shards->generated() ? ": data set written" : ": data set found"));
  return shards;
}

}  // namespace

TrainingData::TrainingData(const assay::Host& host, const DataSettings& settings, assay::compute::Backend& backend)
    : source_(open(host, settings)),
      staging_(host, ASSAY_MEMORY_DATA, assay::data::Loader::device_bytes(settings.dataset.shape, settings.loader),
               "staged batches"),
      loader_(std::make_unique<assay::data::Loader>(*source_, settings.loader, backend, staging_.data())) {}

}  // namespace encoder_decoder
