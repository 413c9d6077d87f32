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
    const std::uint64_t before = bytes_read_.fetch_add(out.size_bytes(), std::memory_order_relaxed);
    for_each_shard_of(index, static_cast<std::int64_t>(out.size() / tokens),
                      [&](const OpenShard& shard, std::uint64_t offset, std::int64_t count) {
                        const std::span part = out.first(static_cast<std::size_t>(count) * tokens);
                        out = out.subspan(part.size());
                        if (read_if_in_memory(shard.file, part.data(), part.size_bytes(), offset)) return;
                        fetch_until_.store(before + bytes_fetched_after_a_miss, std::memory_order_relaxed);
                        read_all(shard.file, shard.name, part.data(), part.size_bytes(), offset);
                      });
  }

  void expect(std::int64_t index, std::int64_t count) const override {
    if (bytes_read() >= fetch_until_.load(std::memory_order_relaxed)) return;
    for_each_shard_of(index, count, [&](const OpenShard& shard, std::uint64_t offset, std::int64_t in_shard) {
      fetch_ahead(shard.file, static_cast<std::size_t>(in_shard) * parameters_.shape.bytes(), offset);
    });
  }

 private:
  struct OpenShard {
    fs::path name;
    File file;
    std::int64_t first, samples;
  };

  // Asking the system to fetch what it has costs a tenth of copying it. So it is asked only for a while after a read
  // that had to wait for the disk; one such read in so many costs little.
  static constexpr std::uint64_t bytes_fetched_after_a_miss = 64 << 20;

  // Calls use(shard, offset in bytes, samples) for each shard that has some of these samples.
  template <class Use>
  void for_each_shard_of(std::int64_t index, std::int64_t count, const Use& use) const {
    while (count > 0) {
      const OpenShard& shard = shards_[shard_of(index)];
      const std::int64_t in_shard = std::min(count, shard.first + shard.samples - index);
      use(shard, static_cast<std::uint64_t>(index - shard.first) * parameters_.shape.bytes(), in_shard);
      index += in_shard, count -= in_shard;
    }
  }

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
  mutable std::atomic<std::uint64_t> fetch_until_ = 0;  // as many bytes are read
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
