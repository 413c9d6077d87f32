#include "wireup/token.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <system_error>

#include "wireup/key_value.hpp"

namespace assay::host::wireup {

std::string random_token() {
  std::array<std::uint8_t, 16> bytes{};
  ssize_t n = 0;
  do n = getrandom(bytes.data(), bytes.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(bytes.size()))
    throw WireupError("the system gives no random bytes for a token: " + std::generic_category().message(errno));
  std::string token;
  for (const std::uint8_t byte : bytes) fmt::format_to(std::back_inserter(token), "{:02x}", byte);
  return token;
}

bool same_token(std::string_view a, std::string_view b) noexcept {
  // The length is no secret; what the characters are is.
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

}  // namespace assay::host::wireup
