#include "algorithm_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <assay/plugin.hpp>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace assay::compute {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int format_version = 2;

// A name that every file system takes.
std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  return name;
}

// For what is too long for a name. FNV-1a, 8 digits: the file's contents distinguish two that share them.
std::string digest(const std::string& text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return fmt::format("{:08x}", hash);
}

void warn(const fs::path& file, const std::string& what) noexcept {
  std::fprintf(stderr, "assay: warning: the cache of algorithms %s %s; going on without it\n", file.c_str(),
               what.c_str());
}

TuningConditions conditions_in(const json& document) {
  const auto text = [&](const char* key) { return document.at(key).get<std::string>(); };
  return {text("device"), text("library"), text("driver"), text("limits")};
}

// Throws what says how the file is not one of ours. A file that is not there holds nothing.
std::map<std::string, CachedAlgorithm> read(const fs::path& file, const TuningConditions& conditions) {
  std::map<std::string, CachedAlgorithm> entries;
  std::ifstream in(file);
  if (!in) {
    std::error_code error;
    if (fs::exists(file, error)) throw std::runtime_error("it cannot be opened");
    return entries;
  }
  const json document = json::parse(in);
  if (document.at("format").get<int>() != format_version) throw std::runtime_error("it has another format");
  if (conditions_in(document) != conditions)
    throw std::runtime_error("it is of another device, library, driver or limit");
  for (const auto& [key, entry] : document.at("algorithms").items()) {
    CachedAlgorithm algorithm{entry.at("algorithm").get<std::string>(), entry.at("microseconds").get<double>()};
    if (algorithm.algorithm.empty()) throw std::runtime_error("an algorithm is empty");
    if (!std::isfinite(algorithm.microseconds) || algorithm.microseconds < 0.0)
      throw std::runtime_error("a time is not a number above 0");
    entries.emplace(key, algorithm);
  }
  return entries;
}

// An empty file that nobody else has: hosts that share a home have processes of one number. It may be read by whoever
// may read what this user makes.
fs::path new_file_beside(const fs::path& file) {
  std::random_device random;
  for (;;) {
    const std::string name = file.string() + "." + std::to_string(random()) + ".new";
    // The mode is the user's usual one: umask(2) reads it only by changing it for all threads.
    const int made = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (made < 0 && errno == EEXIST) continue;
    if (made < 0) throw std::system_error(errno, std::generic_category(), "no file can be made beside it");
    ::close(made);
    return name;
  }
}

void write(const fs::path& file, const json& document) {
  fs::create_directories(file.parent_path());
  const fs::path fresh = new_file_beside(file);
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

std::string text_of(const TuningConditions& conditions) {
  return fmt::format("{}, {}, driver {}, {}", conditions.device, conditions.library,
                     conditions.driver.empty() ? "unknown" : conditions.driver,
                     conditions.limits.empty() ? "limits unknown" : conditions.limits);
}

fs::path AlgorithmCache::default_folder() {
  if (const char* const given = std::getenv("ASSAY_CACHE_DIR")) return given;
  if (const char* const caches = std::getenv("XDG_CACHE_HOME"); caches && *caches) return fs::path(caches) / "assay";
  if (const char* const home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "assay";
  return {};
}

AlgorithmMode algorithm_mode() {
  const char* const given = std::getenv("ASSAY_ALGORITHMS");
  const std::string_view word = given ? given : "";
  if (word.empty()) return AlgorithmMode::kept;
  if (word == "fixed") return AlgorithmMode::fixed;
  if (word == "anew") return AlgorithmMode::anew;
  throw Error(ASSAY_INVALID_ARGUMENT,
              fmt::format("ASSAY_ALGORITHMS is \"{}\"; expected \"fixed\" (those of the file alone), \"anew\" (timed "
                          "again), or nothing",
                          word));
}

std::string to_hex(const std::array<std::byte, 64>& blob) {
  std::string text;
  for (const std::byte b : blob) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::optional<std::array<std::byte, 64>> from_hex(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<std::byte, 64> blob{};
  if (text.size() != 2 * blob.size() || text.find_first_not_of(digits) != std::string_view::npos) return std::nullopt;
  for (std::size_t i = 0; i < blob.size(); ++i)
    blob[i] = static_cast<std::byte>(digits.find(text[2 * i]) * 16 + digits.find(text[2 * i + 1]));
  return blob;
}

AlgorithmCache::AlgorithmCache(fs::path folder, std::string kind, TuningConditions conditions, AlgorithmMode mode)
    : conditions_(std::move(conditions)), mode_(mode) {
  if (folder.empty()) return;
  file_ = std::move(folder) / fmt::format("{}_{}_{}_{}.json", slug(kind), slug(conditions_.device),
                                          slug(conditions_.library),
                                          digest(conditions_.driver + "; " + conditions_.limits));
  if (mode_ == AlgorithmMode::anew) return;
  try {
    entries_ = read(file_, conditions_);
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

void AlgorithmCache::refuse_to_choose(const std::string& key) const {
  if (mode_ != AlgorithmMode::fixed) return;
  throw Error(
      ASSAY_UNSUPPORTED,
      fmt::format(
          "{}: ASSAY_ALGORITHMS=fixed, but {} (device {}); run the case once without ASSAY_ALGORITHMS on "
          "this device, with free memory and without other users, or set the ASSAY_CACHE_DIR of such a run",
          key,
          file_.empty() ? "no folder for files of algorithms is known" : file_.string() + " has no algorithm for it",
          text_of(conditions_)));
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
  if (file_.empty() || changes_.empty() || mode_ == AlgorithmMode::fixed) return;
  try {
    std::map<std::string, CachedAlgorithm> merged;
    try {
      merged = read(file_, conditions_);
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
      algorithms[key] = {{"algorithm", a.algorithm}, {"microseconds", a.microseconds}};
    write(file_, {{"format", format_version},
                  {"device", conditions_.device},
                  {"library", conditions_.library},
                  {"driver", conditions_.driver},
                  {"limits", conditions_.limits},
                  {"algorithms", std::move(algorithms)}});
    changes_.clear();
  } catch (const std::exception& e) {
    warn(file_, std::string("was not written: ") + e.what());
    changes_.clear();  // once is enough
  }
}

}  // namespace assay::compute
