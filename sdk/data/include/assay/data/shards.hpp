// A data set on disk: shard_0000.bin, shard_0001.bin, ... of about 128 MB, int64 (little-endian) source then target per
// sample, without a header, and _manifest.json, which has their contents and checksums (CRC-32C). The manifest is
// written last: a folder without one is no data set, whatever else it has.
//
// The folder may also have `_lock` (empty; held while generating or checking), `_verified` (the shards with right
// checksums, by size, times and inode) and, of an unfinished generation, `_generating` and *.partial.
#pragma once
#include <assay/data/samples.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace assay::data {

struct DatasetParameters {
  SampleShape shape;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  std::int64_t shards = 0;  // 0: as many as give about 128 MB (10^6 bytes) each
};

// A Progress is called while a data set is written, by this process or by another that this one waits for, and while
// its checksums are computed, with the bytes so far and in all. The thread that opens the data set calls it, first with
// 0 and then about ten times a second. An exception of it ends the work: a generation is then given up, and its files
// are removed.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

class ShardedSamples : public SampleSource {
 public:
  // A data set in `folder` with these parameters: opened when one lies there, else generated first, by several threads.
  // `progress` may be empty.
  //
  // Checks before use: the manifest is sound and has these parameters, and each shard has its size and its checksum.
  // Checksums are computed once, at the disk's speed; `_verified` remembers them, so later calls only compare sizes,
  // times and inodes. (In a read-only folder they are computed each time.)
  //
  // Generation: each shard is written under another name, flushed to the disk, then renamed. A killed process leaves
  // nothing that looks finished, and the next call clears its leftovers. If several processes (ranks) call it for one
  // folder at the same time, one generates, and the others wait and follow its progress.
  //
  // Throws assay::Error that names the file, the found and the expected value, and the remedy. INVALID_ARGUMENT:
  // impossible parameters, a folder with another or a damaged data set (which is never overwritten). INTERNAL: errors
  // of the system: a disk without room (before the first byte is written, with the bytes wanted and free; also when it
  // fills up on the way, which leaves no shard behind), a file that cannot be read.
  static std::unique_ptr<ShardedSamples> open_or_generate(const std::string& folder,
                                                          const DatasetParameters& parameters,
                                                          const Progress& progress);
  // Bytes read from the shards so far, by all threads, from whatever the system holds them in.
  virtual std::uint64_t bytes_read() const = 0;
  virtual bool generated() const = 0;  // by this call of open_or_generate
};

}  // namespace assay::data
