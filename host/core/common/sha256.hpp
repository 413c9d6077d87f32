// SHA-256, as `sha256sum` prints it: what a record says of a file can be checked by hand.
#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::host {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view bytes);
  std::string hex();  // 64 digits; once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Somebody wants no more of it.
class ReadingStopped : public std::runtime_error {
 public:
  explicit ReadingStopped(const std::filesystem::path& path)
      : runtime_error("reading " + path.string() + " was stopped") {}
};

// Throws std::system_error whose text names the file, and ReadingStopped as soon as `stop`, where there is one, is not
// 0.
std::string sha256_of_file(const std::filesystem::path& path, const std::atomic<int>* stop = nullptr);

// The first digits of a hash, for people.
std::string short_hash(const std::string& hash);

}  // namespace assay::host
