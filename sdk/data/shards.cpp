#include <assay/data/shards.hpp>

#include <assay/plugin.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "files.hpp"
#include "generate.hpp"
#include "manifest.hpp"
#include "verify.hpp"

namespace assay::data {

namespace fs = std::filesystem;

namespace {

class OpenShards : public ShardedSamples {
 public:
  OpenShards(const fs::path& folder, const Manifest& manifest, bool generated)
      : parameters_(manifest.parameters),
        base_(parameters_.samples / parameters_.shards),
        longer_(parameters_.samples % parameters_.shards),
        generated_(generated) {
    for (const Shard& shard : manifest.shards)
      shards_.push_back({folder / shard.name, open_to_read(folder / shard.name), shard.first, shard.samples});
  }

  SampleShape shape() const override { return parameters_.shape; }
  std::int64_t samples() const override { return parameters_.samples; }
  std::uint64_t bytes_read() const override { return bytes_read_.load(std::memory_order_relaxed); }
  bool generated() const override { return generated_; }

  void read(std::int64_t index, std::span<std::int64_t> out) const override {
    const auto tokens = static_cast<std::size_t>(parameters_.shape.tokens());
    bytes_read_.fetch_add(out.size_bytes(), std::memory_order_relaxed);
    while (!out.empty()) {
      const OpenShard& shard = shards_[shard_of(index)];
      const std::int64_t left = shard.first + shard.samples - index;
      const std::int64_t count = std::min(left, static_cast<std::int64_t>(out.size() / tokens));
      const std::span part = out.first(static_cast<std::size_t>(count) * tokens);
      read_all(shard.file, shard.name, part.data(), part.size_bytes(),
               static_cast<std::uint64_t>(index - shard.first) * parameters_.shape.bytes());
      out = out.subspan(part.size());
      index += count;
    }
  }

 private:
  struct OpenShard {
    fs::path name;
    File file;
    std::int64_t first, samples;
  };

  // The first `longer_` shards have one sample more than the others.
  std::size_t shard_of(std::int64_t index) const {
    const std::int64_t in_longer = longer_ * (base_ + 1);
    return static_cast<std::size_t>(index < in_longer ? index / (base_ + 1) : longer_ + (index - in_longer) / base_);
  }

  DatasetParameters parameters_;
  std::int64_t base_, longer_;
  bool generated_;
  std::vector<OpenShard> shards_;
  mutable std::atomic<std::uint64_t> bytes_read_ = 0;
};

}  // namespace

std::unique_ptr<ShardedSamples> ShardedSamples::open_or_generate(const std::string& folder_name,
                                                                 const DatasetParameters& parameters,
                                                                 const Progress& progress) {
  const fs::path folder = folder_name;
  const Manifest planned = plan(parameters);
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    refuse(folder, "is a file; a data set needs a folder. Remedy: name another");
  if (fs::create_directories(folder, error); error) fail(folder, "making this folder", error.value());

  const auto waiting = [&] {
    if (progress) progress(std::min(bytes_there(folder, planned), planned.bytes()), planned.bytes());
  };
  const std::optional<File> held = lock(folder / lock_name, waiting);
  const fs::path file = folder / manifest_name;
  bool generated = false;
  Manifest manifest;
  if (const std::optional<std::string> text = read_text(file)) {
    manifest = parse_manifest(file, *text, planned);
    if (held) remove_if_there(folder / generating_name);  // its writer was killed when all but this was done
    verify(folder, manifest, held.has_value(), progress);
  } else {
    if (!held)
      throw Error(ASSAY_INTERNAL, folder.string() +
                                      ": holds no data set, and none can be generated, as no lock can be had there; "
                                      "remedy: a folder that is writable, on a file system that knows locks (flock)");
    clear_unfinished(folder);
    manifest = generate(folder, planned, progress);
    remember_as_verified(folder, manifest);
    generated = true;
  }
  return std::make_unique<OpenShards>(folder, manifest, generated);
}

}  // namespace assay::data
