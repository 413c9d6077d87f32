// A data set on disk: shard_0000.bin, shard_0001.bin, ... of about 128 MB, int64 (little-endian) source then target per
// sample, without a header, and _manifest.json, which says what is in them and with what checksums (CRC-32C). The
// manifest is written last: a folder without one is no data set, whatever else lies in it.
//
// Beside these there may lie `_lock` (empty; whoever generates or checks holds it), `_verified` (the shards whose
// checksums were found right, by size, times and inode) and, of an unfinished generation, `_generating` and *.partial.
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
  // Checks before use: the manifest is sound and of these parameters, each shard has its size and its checksum. The
  // checksums are computed once, at the disk's speed; `_verified` remembers it, so that later calls compare sizes,
  // times and inodes alone. (In a folder where nothing can be written they are computed each time.)
  //
  // Generation: each shard under another name, flushed to the disk, then renamed; a process that is killed leaves
  // nothing that looks finished, and the next call clears what it left. If several processes (ranks) call it for one
  // folder at the same time, one generates, and the others wait and are told of its progress.
  //
  // Throws assay::Error that names the file, what was found and expected, and the remedy. INVALID_ARGUMENT: impossible
  // parameters, a folder that holds another or a damaged data set (which is never overwritten). INTERNAL: what the
  // system refuses: a disk without room (before the first byte is written, with the bytes wanted and free; also when it
  // fills up on the way, which leaves no shard behind), a file that cannot be read.
  static std::unique_ptr<ShardedSamples> open_or_generate(const std::string& folder,
                                                          const DatasetParameters& parameters,
                                                          const Progress& progress);
  // Bytes read from the shards so far, by all threads, from whatever the system holds them in.
  virtual std::uint64_t bytes_read() const = 0;
  virtual bool generated() const = 0;  // by this call of open_or_generate
};

}  // namespace assay::data
