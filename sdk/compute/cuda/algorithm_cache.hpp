// Which algorithm won for which matrix product, kept between runs: timing the candidates of a model's products takes
// seconds, and its outcome depends on the GPU and the library alone. Plain C++: tested without a GPU.
//
// The file is a help and never a condition: one that is corrupt, or cannot be written, is a warning on stderr.
#pragma once
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace assay::cuda {

struct CachedAlgorithm {
  std::array<std::byte, 64> blob{};  // opaque: for the same version of the library on the same GPU
  double microseconds = 0.0;         // as measured
};

class AlgorithmCache {
 public:
  // Where files lie: $ASSAY_CACHE_DIR, or assay in $XDG_CACHE_HOME, or ~/.cache/assay. Empty when ASSAY_CACHE_DIR is
  // set to nothing, or no home is known: then nothing is read or written.
  static std::filesystem::path default_folder();

  // Reads the file of this device and library in `folder`, if there is one.
  AlgorithmCache(std::filesystem::path folder, std::string device, std::string library);
  ~AlgorithmCache();  // saves
  AlgorithmCache(const AlgorithmCache&) = delete;
  AlgorithmCache& operator=(const AlgorithmCache&) = delete;

  std::optional<CachedAlgorithm> find(const std::string& key) const;
  void store(const std::string& key, const CachedAlgorithm& algorithm);
  void forget(const std::string& key);  // an entry that turned out not to work

  // Writes what was stored since the last time, together with what other processes wrote meanwhile: to a new file,
  // which then takes the place of the old one.
  void save() noexcept;
  const std::filesystem::path& file() const { return file_; }  // empty: none

 private:
  std::filesystem::path file_;
  std::string device_, library_;
  std::map<std::string, CachedAlgorithm> entries_;
  std::map<std::string, std::optional<CachedAlgorithm>> changes_;  // since the last save; none: forgotten
};

}  // namespace assay::cuda
