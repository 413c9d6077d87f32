#include "crc32c.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace assay::data {
namespace {

// table[0] takes one byte; table[k] takes a byte that k more bytes follow, so that eight look-ups take eight bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  return tables;
}
constexpr Tables tables = make_tables();

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc, const unsigned char* p,
                                                               std::size_t size) {
  std::uint64_t state = ~crc;
  for (; size >= 8; p += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; size > 0; ++p, --size) narrow = _mm_crc32_u8(narrow, *p);
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::uint32_t crc, const void* bytes, std::size_t size) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  std::uint32_t state = ~crc;
  for (; size >= 8; p += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= state;
    state = 0;
    for (std::size_t k = 0; k < 8; ++k) state ^= tables[7 - k][word >> (8 * k) & 0xff];
  }
  for (; size > 0; ++p, --size) state = state >> 8 ^ tables[0][(state ^ *p) & 0xff];
  return ~state;
}

std::uint32_t crc32c(std::uint32_t crc, const void* bytes, std::size_t size) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return by_instruction(crc, static_cast<const unsigned char*>(bytes), size);
#endif
  return crc32c_by_tables(crc, bytes, size);
}

std::string crc_text(std::uint32_t crc) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", crc);
  return text;
}

}  // namespace assay::data
