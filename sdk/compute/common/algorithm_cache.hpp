// Which algorithm won for which operation, kept between runs: timing the candidates of a model's products takes
// seconds, and two processes that time them anew may choose differently. For all devices; tested without a GPU.
//
// The fastest algorithm depends on the device, its driver and clocks or its threads, and the library. Each combination
// has its own file and is timed anew. The file is optional unless it is requested (ASSAY_ALGORITHMS=fixed): if it is
// corrupt or cannot be written, a warning goes to stderr.
#pragma once
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace assay::compute {

// What a choice was made under.
struct TuningConditions {
  std::string device, library;  // "NVIDIA H200", "cublasLt 13.1.0"
  std::string driver;           // "580.95.05"; "" if unknown; "none" for a processor
  std::string limits;           // of clocks and power, or threads; "" if unknown
  bool operator==(const TuningConditions&) const = default;
};

std::string text_of(const TuningConditions& conditions);  // one line

// What the user wants of the file: $ASSAY_ALGORITHMS.
enum class AlgorithmMode {
  kept,   // not set: read it, and add what is not in it
  fixed,  // "fixed": read it, change nothing, and refuse what is not in it
  anew    // "anew": time everything again in this process, and replace what is in it
};
// Throws INVALID_ARGUMENT with the words that there are.
AlgorithmMode algorithm_mode();

struct CachedAlgorithm {
  std::string algorithm;      // as the library's user writes it: for the same version of the library on the same GPU
  double microseconds = 0.0;  // as measured
};

// cuBLASLt's algorithms are 64 opaque bytes.
std::string to_hex(const std::array<std::byte, 64>& blob);
std::optional<std::array<std::byte, 64>> from_hex(std::string_view text);  // nothing when it is not 64 bytes

class AlgorithmCache {
 public:
  // Where files lie: $ASSAY_CACHE_DIR, or assay in $XDG_CACHE_HOME, or ~/.cache/assay. Empty when ASSAY_CACHE_DIR is
  // set to nothing, or no home is known: then nothing is read or written.
  static std::filesystem::path default_folder();

  // Reads the file of these conditions in `folder`, if there is one. `kind`: "matmul", the first part of its name.
  AlgorithmCache(std::filesystem::path folder, std::string kind, TuningConditions conditions,
                 AlgorithmMode mode = AlgorithmMode::kept);
  ~AlgorithmCache();  // saves
  AlgorithmCache(const AlgorithmCache&) = delete;
  AlgorithmCache& operator=(const AlgorithmCache&) = delete;

  // With AlgorithmMode::anew what this process has stored.
  std::optional<CachedAlgorithm> find(const std::string& key) const;
  // Where what is not found must not be timed: throws UNSUPPORTED, naming the key, the file and the remedy.
  void refuse_to_choose(const std::string& key) const;
  void store(const std::string& key, const CachedAlgorithm& algorithm);
  void forget(const std::string& key);  // an entry that turned out not to work

  // Writes what was stored since the last time, together with what other processes wrote meanwhile: to a new file,
  // which then takes the place of the old one.
  void save() noexcept;
  const std::filesystem::path& file() const { return file_; }  // empty: none

 private:
  std::filesystem::path file_;
  TuningConditions conditions_;
  AlgorithmMode mode_;
  std::map<std::string, CachedAlgorithm> entries_;
  std::map<std::string, std::optional<CachedAlgorithm>> changes_;  // since the last save; none: forgotten
};

}  // namespace assay::compute
