#include "common/host_file_name.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace assay::host {
namespace {

constexpr std::size_t most_name_bytes = 150, kept_name_bytes = 120;

bool is_kept_in_name(char c, bool is_first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         (c == '.' && !is_first);
}

// FNV-1a: the same on each host, whatever its C++ library.
std::uint64_t hash_of_host(std::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

}  // namespace

std::string file_name_of_host(std::string_view host) {
  std::string name;
  for (const char c : host)
    name +=
        is_kept_in_name(c, name.empty()) ? std::string(1, c) : fmt::format("+{:02x}", static_cast<unsigned char>(c));
  if (name.size() <= most_name_bytes) return name;
  // No two digits follow this '+', so that the name is no other host's.
  return fmt::format("{}+-{:016x}", name.substr(0, kept_name_bytes), hash_of_host(host));
}

std::optional<std::string> host_of_file_name(std::string_view name) {
  std::string host;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '+') {
      host += name[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = name.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc{} || end != digits.data() + 2) return std::nullopt;
    host += static_cast<char>(byte);
    i += 2;
  }
  // What somebody else has put there is no host's name.
  return file_name_of_host(host) == name ? std::optional(host) : std::nullopt;
}

}  // namespace assay::host
