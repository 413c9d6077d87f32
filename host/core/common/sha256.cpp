#include "common/sha256.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "common/sha256_blocks.hpp"

namespace assay::host {

struct Sha256::State {
  crypto_hash_sha256_state of_library;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { crypto_hash_sha256_init(&state_->of_library); }
Sha256::~Sha256() = default;

// The library takes what does not fill a block.
void Sha256::add(std::string_view bytes) {
  constexpr std::size_t block = 64;
  crypto_hash_sha256_state& state = state_->of_library;
  const auto* next = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  if (has_sha256_instructions()) {
    const std::size_t held = state.count / 8 % block;  // it counts bits
    const std::size_t first = held == 0 ? 0 : std::min(left, block - held);
    crypto_hash_sha256_update(&state, next, first);
    next += first, left -= first;
    const std::size_t blocks = left / block;
    take_sha256_blocks(state.state, next, blocks);
    state.count += 8 * block * blocks;
    next += block * blocks, left -= block * blocks;
  }
  crypto_hash_sha256_update(&state, next, left);
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
