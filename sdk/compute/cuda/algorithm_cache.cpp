#include "algorithm_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace assay::cuda {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int format_version = 1;

std::string to_hex(const std::array<std::byte, 64>& blob) {
  std::string text;
  for (const std::byte b : blob) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::array<std::byte, 64> from_hex(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw std::runtime_error("an algorithm is not hexadecimal");
  };
  std::array<std::byte, 64> blob{};
  if (text.size() != 2 * blob.size()) throw std::runtime_error("an algorithm is not 64 bytes long");
  for (std::size_t i = 0; i < blob.size(); ++i)
    blob[i] = static_cast<std::byte>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  return blob;
}

// A name that every file system takes.
std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  return name;
}

void warn(const fs::path& file, const std::string& what) noexcept {
  std::fprintf(stderr, "assay: warning: the cache of matrix-product algorithms %s %s; going on without it\n",
               file.c_str(), what.c_str());
}

// Throws what says how the file is not one of ours. A file that is not there holds nothing.
std::map<std::string, CachedAlgorithm> read(const fs::path& file, const std::string& device,
                                            const std::string& library) {
  std::map<std::string, CachedAlgorithm> entries;
  std::ifstream in(file);
  if (!in) {
    std::error_code error;
    if (fs::exists(file, error)) throw std::runtime_error("it cannot be opened");
    return entries;
  }
  const json document = json::parse(in);
  if (document.at("format").get<int>() != format_version) throw std::runtime_error("it has another format");
  if (document.at("device").get<std::string>() != device || document.at("library").get<std::string>() != library)
    throw std::runtime_error("it is of another device or library");
  for (const auto& [key, entry] : document.at("algorithms").items()) {
    CachedAlgorithm algorithm{from_hex(entry.at("algorithm").get<std::string>()),
                              entry.at("microseconds").get<double>()};
    if (!std::isfinite(algorithm.microseconds) || algorithm.microseconds < 0.0)
      throw std::runtime_error("a time is not a number above 0");
    entries.emplace(key, algorithm);
  }
  return entries;
}

void write(const fs::path& file, const json& document) {
  fs::create_directories(file.parent_path());
  fs::path fresh = file;
  fresh += fmt::format(".{}.new", getpid());
  try {
    std::ofstream out(fresh, std::ios::trunc);
    out << document.dump(1) << '\n';
    out.close();
    if (!out) throw std::runtime_error("the file system takes no more data");
    fs::rename(fresh, file);  // readers see the old file or the new one, never a part
  } catch (...) {
    std::error_code ignored;
    fs::remove(fresh, ignored);
    throw;
  }
}

}  // namespace

fs::path AlgorithmCache::default_folder() {
  if (const char* const given = std::getenv("ASSAY_CACHE_DIR")) return given;
  if (const char* const caches = std::getenv("XDG_CACHE_HOME"); caches && *caches) return fs::path(caches) / "assay";
  if (const char* const home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "assay";
  return {};
}

AlgorithmCache::AlgorithmCache(fs::path folder, std::string device, std::string library)
    : device_(std::move(device)), library_(std::move(library)) {
  if (folder.empty()) return;
  file_ = std::move(folder) / fmt::format("matmul_{}_{}.json", slug(device_), slug(library_));
  try {
    entries_ = read(file_, device_, library_);
  } catch (const std::exception& e) {
    warn(file_, fmt::format("was not read: {}", e.what()));
  }
}

AlgorithmCache::~AlgorithmCache() { save(); }

std::optional<CachedAlgorithm> AlgorithmCache::find(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

void AlgorithmCache::store(const std::string& key, const CachedAlgorithm& algorithm) {
  entries_[key] = algorithm;
  changes_[key] = algorithm;
}

void AlgorithmCache::forget(const std::string& key) {
  entries_.erase(key);
  changes_[key] = std::nullopt;
}

void AlgorithmCache::save() noexcept {
  if (file_.empty() || changes_.empty()) return;
  try {
    std::map<std::string, CachedAlgorithm> merged;
    try {
      merged = read(file_, device_, library_);
    } catch (const std::exception&) {
      merged = entries_;  // said when it was opened; what is written now replaces it
    }
    for (const auto& [key, change] : changes_) {
      if (change)
        merged[key] = *change;
      else
        merged.erase(key);
    }
    json algorithms = json::object();
    for (const auto& [key, a] : merged)
      algorithms[key] = {{"algorithm", to_hex(a.blob)}, {"microseconds", a.microseconds}};
    write(file_, {{"format", format_version},
                  {"device", device_},
                  {"library", library_},
                  {"algorithms", std::move(algorithms)}});
    changes_.clear();
  } catch (const std::exception& e) {
    warn(file_, std::string("was not written: ") + e.what());
    changes_.clear();  // once is enough
  }
}

}  // namespace assay::cuda
