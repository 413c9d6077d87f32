#include "plugin/device_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "common/device_kinds.hpp"
#include "plugin/search.hpp"

namespace assay::host::plugin {

std::vector<std::string> other_device_kinds() {
  std::vector<std::string> kinds = installed_device_kinds();
  std::erase_if(kinds, [](const std::string& kind) { return kind_of_device(kind) != nullptr; });
  return kinds;
}

std::vector<std::string> device_words() {
  std::vector<std::string> words = host::device_words();
  for (std::string& kind : other_device_kinds()) words.push_back(std::move(kind));
  return words;
}

bool is_device_word(const std::string& word) {
  const std::vector<std::string> words = device_words();
  return std::find(words.begin(), words.end(), word) != words.end();
}

namespace {
std::string in_sentence(std::span<const std::string> words) {
  return fmt::format("{} or {}", fmt::join(words.first(words.size() - 1), ", "), words.back());
}
}  // namespace

std::string device_words_in_sentence() { return in_sentence(device_words()); }

std::string device_kinds_in_sentence() {
  const std::vector<std::string> words = device_words();
  return in_sentence(std::span(words).subspan(1));  // without "auto"
}

std::vector<std::string> kinds_for_auto(const std::vector<std::string>& others) {
  std::vector<std::string> kinds;
  for (const KindOfDevice& kind : kinds_of_devices) kinds.emplace_back(kind.name);
  kinds.insert(kinds.end() - 1, others.begin(), others.end());
  return kinds;
}

}  // namespace assay::host::plugin
