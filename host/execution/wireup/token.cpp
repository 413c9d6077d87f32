#include "wireup/token.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <set>

#include "wireup/key_value.hpp"
#include "wireup/private_file.hpp"

namespace assay::host::wireup {
namespace {

// 128 bits in base 64, without the padding.
constexpr std::size_t token_characters_min = 22, different_characters_min = 8, token_characters_max = 1024;

}  // namespace

void make_sodium_ready() {
  if (sodium_init() < 0) throw WireupError("libsodium cannot be used: the system gives it no random bytes");
}

std::string random_token() {
  make_sodium_ready();
  std::array<unsigned char, 16> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  std::string token(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(token.data(), token.size(), bytes.data(), bytes.size());
  token.pop_back();
  return token;
}

void check_token(std::string_view token, std::string_view source) {
  const std::size_t different = std::set<char>(token.begin(), token.end()).size();
  if (token.size() >= token_characters_min && token.size() <= token_characters_max &&
      different >= different_characters_min)
    return;
  throw WireupError(
      fmt::format("{} has {} characters, {} of them different; expected a random text of {} to {} characters, as "
                  "'openssl rand -hex 16' makes it",
                  source, token.size(), different, token_characters_min, token_characters_max));
}

std::string token_of_file(const std::filesystem::path& file, std::string_view source) {
  const PrivateText read = read_private_file(file);
  if (!read.text) throw WireupError(fmt::format("{}: {}", source, read.problem));
  std::string token = *read.text;
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  check_token(token, fmt::format("{}: {}", source, file.string()));
  return token;
}

}  // namespace assay::host::wireup
