#include "assay/models/stage_layers.hpp"

#include <algorithm>
#include <assay/models/decoder.hpp>

namespace assay::models {
namespace {

// Gives layers one by one to whoever has least of work; of equals to the first one.
void give_layers(std::int64_t count, std::vector<double>& work, std::vector<std::int64_t>& layers) {
  for (; count > 0; --count) {
    const auto least = std::min_element(work.begin(), work.end());
    *least += 1;
    ++layers[static_cast<std::size_t>(least - work.begin())];
  }
}

std::vector<std::int64_t> layers_by_work(const StageDivision& d) {
  const auto ranks = static_cast<std::size_t>(d.ranks), chunks = static_cast<std::size_t>(d.virtual_stages);
  std::vector<std::int64_t> of_rank(ranks, d.virtual_stages), of_stage(ranks * chunks, 1);
  std::vector<double> work(ranks, static_cast<double>(d.virtual_stages));
  work.back() += d.head_layers;
  give_layers(d.layers - d.ranks * d.virtual_stages, work, of_rank);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::int64_t> of_chunk(chunks, 1);
    std::vector<double> chunk_work(chunks, 1);
    if (rank + 1 == ranks) chunk_work.back() += d.head_layers;
    give_layers(of_rank[rank] - d.virtual_stages, chunk_work, of_chunk);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) of_stage[chunk * ranks + rank] = of_chunk[chunk];
  }
  return of_stage;
}

}  // namespace

std::vector<std::int64_t> layers_of_stages(const StageDivision& d) {
  const std::int64_t stages = d.ranks * d.virtual_stages;
  if (d.layers < stages) throw Error(ASSAY_INTERNAL, "a division of layers into more stages; expected one layer each");
  if (d.balance == StageBalance::work) return layers_by_work(d);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), d.layers / stages);
  std::for_each_n(layers.begin(), d.layers % stages, [](std::int64_t& each) { ++each; });
  return layers;
}

StageDivision stage_division(const DecoderConfig& c) {
  DecoderConfig none = c;
  none.layers = 0;
  const auto head = static_cast<double>(decoder_forward_flops(none));
  const double layers = static_cast<double>(decoder_forward_flops(c)) - head;
  return {.layers = c.layers,
          .ranks = c.stages.ranks,
          .virtual_stages = c.stages.virtual_stages,
          .head_layers = head * static_cast<double>(c.layers) / layers,
          .balance = c.stages.balance};
}

std::vector<double> work_of_ranks(const StageDivision& d) {
  std::vector<double> work(static_cast<std::size_t>(d.ranks), 0);
  const std::vector<std::int64_t> layers = layers_of_stages(d);
  for (std::size_t stage = 0; stage < layers.size(); ++stage)
    work[stage % work.size()] += static_cast<double>(layers[stage]);
  work.back() += d.head_layers;
  return work;
}

}  // namespace assay::models
