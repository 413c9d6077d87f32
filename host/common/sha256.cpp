#include "common/sha256.hpp"

#include <sodium.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace assay::host {

struct Sha256::State {
  crypto_hash_sha256_state of_library;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { crypto_hash_sha256_init(&state_->of_library); }
Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  crypto_hash_sha256_update(&state_->of_library, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest{};
  crypto_hash_sha256_final(&state_->of_library, digest.data());
  std::string text(2 * digest.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  text.pop_back();  // the library ends it with a zero
  return text;
}

std::string sha256_of_file(const std::filesystem::path& path, const std::atomic<int>* stop) {
  const auto fail = [&](int error) {
    return std::system_error(error ? error : EIO, std::generic_category(), "cannot read " + path.string());
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw fail(errno);
  Sha256 hash;
  std::array<char, 65536> block;
  do {
    if (stop && stop->load() != 0) throw ReadingStopped(path);
    file.read(block.data(), block.size());
    hash.add({block.data(), static_cast<std::size_t>(file.gcount())});
  } while (file);
  if (!file.eof()) throw fail(errno);
  return hash.hex();
}

std::string short_hash(const std::string& hash) {
  constexpr std::size_t digits = 12;
  return hash.substr(0, digits);
}

}  // namespace assay::host
