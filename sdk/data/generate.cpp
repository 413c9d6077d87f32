#include "generate.hpp"

#include <assay/plugin.hpp>

#include <sys/statvfs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>
#include <vector>

#include "crc32c.hpp"
#include "files.hpp"
#include "shard_workers.hpp"

namespace assay::data {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "shards hold the tokens as they lie in memory");

namespace {

constexpr std::size_t chunk_bytes = 1 << 20;                 // made, checksummed and written while it is in the cache
constexpr std::uint64_t room_beside_shards_bytes = 1 << 20;  // manifest, marks, the file system's own

bool is_shard_name(const std::string& name) {
  return name.starts_with("shard_") && (name.ends_with(".bin") || name.ends_with(".bin.partial"));
}

void require_room(const fs::path& folder, std::uint64_t bytes) {
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) != 0) fail(folder, "asking for the free space of its disk", errno);
  if (disk.f_blocks == 0) return;  // a file system that does not report it
  const std::uint64_t free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  const std::uint64_t wanted = bytes + room_beside_shards_bytes;
  if (wanted > free)
    throw Error(ASSAY_INTERNAL, folder.string() + ": the data set wants " + bytes_text(wanted) + ", its disk has " +
                                    bytes_text(free) +
                                    " free; nothing was written. Remedy: make room, name a folder on another disk, or "
                                    "take fewer samples");
}

std::uint32_t write_shard(const fs::path& file, const Shard& shard, const SyntheticSamples& source, const Tell& tell) {
  const auto tokens = static_cast<std::size_t>(source.shape().tokens());
  const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_bytes / source.shape().bytes()));
  std::vector<std::int64_t> chunk(static_cast<std::size_t>(std::min(most, shard.samples)) * tokens);
  std::uint32_t crc = 0;
  NewFile made(file);
  for (std::int64_t done = 0; done < shard.samples;) {
    const std::int64_t count = std::min(most, shard.samples - done);
    const std::span part = std::span(chunk).first(static_cast<std::size_t>(count) * tokens);
    source.read(shard.first + done, part);
    crc = crc32c(crc, part.data(), part.size_bytes());
    made.write(part.data(), part.size_bytes());
    done += count;
    if (!tell(part.size_bytes())) return 0;
  }
  made.finish();
  return crc;
}

void write_all(const fs::path& folder, Manifest& manifest, const Progress& progress) {
  const DatasetParameters& p = manifest.parameters;
  const SyntheticSamples source(p.shape, p.samples, p.seed);
  write_text(folder / generating_name, "shards are being written; without a process that does, they are remains\n");
  sync_folder(folder);
  for_each_shard(manifest.shards.size(), manifest.bytes(), progress, [&](std::size_t i, const Tell& tell) {
    Shard& shard = manifest.shards[i];
    shard.crc = write_shard(folder / shard.name, shard, source, tell);
  });
  sync_folder(folder);
  write_text(folder / manifest_name, text_of(manifest));
  sync_folder(folder);
  remove_if_there(folder / generating_name);
}

}  // namespace

void clear_unfinished(const fs::path& folder) {
  std::vector<fs::path> remains;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (is_shard_name(entry->path().filename().string())) remains.push_back(entry->path());
  if (error) fail(folder, "listing it", error.value());
  const bool ours = fs::exists(folder / generating_name);
  if (!remains.empty() && !ours)
    refuse(folder, "holds " + remains.front().filename().string() + " but no " + manifest_name +
                       ", so it is unknown whose it is; remedy: name another folder, or remove the shards");
  for (const fs::path& file : remains) remove_if_there(file);
  for (const char* name : {manifest_name, verified_name, generating_name}) remove_if_there(partial_name(folder / name));
  remove_if_there(folder / verified_name);
  remove_if_there(folder / generating_name);  // last: a clearing that is killed is taken up again
}

Manifest generate(const fs::path& folder, Manifest planned, const Progress& progress) {
  require_room(folder, planned.bytes());
  try {
    write_all(folder, planned, progress);
  } catch (...) {
    const std::uint64_t there = bytes_there(folder, planned);
    try {
      remove_if_there(folder / manifest_name);  // before the shards that it lists
      clear_unfinished(folder);
    } catch (const Error&) {
      // The error to report is the one that made the generation fail; the next call clears the folder.
    }
    try {
      throw;
    } catch (const Error& e) {
      throw Error(e.status(), std::string(e.what()) + "; generation given up after " + bytes_text(there) + " of " +
                                  bytes_text(planned.bytes()) + ", and cleared");
    }
  }
  return planned;
}

std::uint64_t bytes_there(const fs::path& folder, const Manifest& planned) {
  std::uint64_t bytes = 0;
  for (const Shard& shard : planned.shards) {
    std::error_code error;
    std::uintmax_t size = fs::file_size(folder / shard.name, error);
    if (error) size = fs::file_size(partial_name(folder / shard.name), error);
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace assay::data
