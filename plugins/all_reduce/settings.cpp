#include "settings.hpp"

namespace all_reduce {

using assay::comm::Collective;
namespace {

constexpr double mib = 1 << 20;

void read_mode(Settings& settings, Mode mode, bool registered) {
  if (mode == Mode::settings) return;
  if (registered)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "registered = true with a mode, which names the memory, too; expected one of them");
  settings.measures_kinds = mode == Mode::measured;
  if (settings.measures_kinds) return;
  const auto kind = assay::comm::memory_kinds.find(modes.name_of(mode));
  if (*kind == assay::comm::MemoryKind::copy_engines && settings.collective != Collective::all_gather)
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "copy engines make gatherings, not " + settings.collective_name +
                                                   "; expected collective = \"all_gather\", or another mode");
  settings.take(*kind);
}

}  // namespace

void Settings::take(assay::comm::MemoryKind taken) {
  kind = taken;
  registration = assay::comm::registration_of(taken);
  options.copy_engines = taken == assay::comm::MemoryKind::copy_engines;
}

Settings::Settings(const assay::Case& c)
    : collective(c.choice("collective", collectives)),
      collective_name(collectives.name_of(collective)),
      backend(c.get<std::string>("backend")),
      dtype(c.choice("dtype", dtypes)),
      reduction(c.choice("reduction", reductions)),
      reduction_name(reductions.name_of(reduction)),
      in_place(c.get<bool>("in_place") && may_be_in_place(collective)),
      root(c.get<std::int32_t>("root")),
      rank(c.rank()),
      ranks(c.rank_count()) {
  options.max_channels = c.get<std::int32_t>("max_channels");
  graph = assay::workload::is_graph(c);
  if (c.get<bool>("registered"))
    registration = c.get<bool>("windows") ? assay::comm::Registration::symmetric : assay::comm::Registration::plain;
  read_mode(*this, c.choice("mode", modes), c.get<bool>("registered"));
  repeats = c.get<std::int64_t>("repeats");
  waits_for_each = c.choice("wait", waits) == Wait::each;
  if (waits_for_each && graph)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "wait = \"each\" with execution = \"graph\", whose collectives follow one another on the GPU; "
                       "take execution = \"eager\", or leave wait out");
  options.on_compute_stream = graph || c.choice("stream", streams) == Stream::compute;
  if (collective == Collective::broadcast && !in_place)
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "a broadcast has one buffer; leave out in_place = false");
  if (collective == Collective::broadcast && root >= ranks)
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "root = " + std::to_string(root) + ", but the case has " +
                                                   std::to_string(ranks) + " rank(s), which count from 0");
  next_rank = (rank + 1) % ranks;
  previous_rank = (rank + ranks - 1) % ranks;
  auto bytes = c.get<std::int64_t>("size_bytes");
  if (bytes == 0) bytes = static_cast<std::int64_t>(c.get<double>("size_mb") * mib);
  message = assay::comm::plan_message(collective, bytes, assay::compute::size_of(dtype), ranks);
}

}  // namespace all_reduce
