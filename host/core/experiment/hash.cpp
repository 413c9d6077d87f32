#include "experiment/hash.hpp"

#include "experiment/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace assay::host::experiment {
namespace {

class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::string hex() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

// The type stands before the value, so that 1, 1.0, true and "1" differ.
std::string typed_text(const Value& value) {
  constexpr std::array types{"bool", "int", "float", "string"};
  return fmt::format("{} {}", types[value.index()], to_text(value));
}

// With their lengths, so that no text can pass for two.
void add_entry(Fnv1a& hash, std::string_view group, std::string_view key, std::string_view text) {
  hash.add(fmt::format("{}:{} {}:{} {}:{}\n", group.size(), group, key.size(), key, text.size(), text));
}

// As it counts; nothing when it does not.
std::optional<Value> counted(const Setting& setting, const Value& value) {
  const bool is_default = setting.initial == Values{value};
  if (setting.identity == Identity::ignored) return std::nullopt;
  if (setting.identity == Identity::counts_unless_default && is_default) return std::nullopt;
  return is_default && setting.initial_counts_as ? *setting.initial_counts_as : value;
}

std::optional<std::string> counted_text(const Setting& setting, const Values& values) {
  const bool counts = setting.identity == Identity::counts ||
                      (setting.identity == Identity::counts_unless_default && setting.initial != values);
  if (!counts) return std::nullopt;
  std::string text;
  for (const Value& value : values) text += typed_text(value) + "\n";
  return text;
}

}  // namespace

std::string case_hash(const Case& c, const std::string& workload_id,
                      const std::vector<std::pair<std::string, std::string>>& identity) {
  Fnv1a hash;
  hash.add("assay case 1\n");
  add_entry(hash, "workload", "id", workload_id);
  for (const auto& [key, value] : c.params) add_entry(hash, "param", key, typed_text(value));
  for (const auto& [key, value] : c.settings())
    if (const auto counts = counted(*find_setting(key), value)) add_entry(hash, "setting", key, typed_text(*counts));
  for (const auto& [key, values] : c.list_settings())
    if (const auto text = counted_text(*find_list_setting(key), values)) add_entry(hash, "list", key, *text);
  auto sorted = identity;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [key, text] : sorted) add_entry(hash, "identity", key, text);
  return hash.hex();
}

}  // namespace assay::host::experiment
