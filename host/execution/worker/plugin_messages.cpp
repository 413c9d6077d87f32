#include "worker/plugin_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace assay::host::worker {

std::string cut_to(std::string text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;  // not within a character
  text.resize(end);
  return text + "...";
}

void PluginMessages::set(std::string text) {
  constexpr std::size_t most_bytes = 4000;  // a plugin may say too much; a record holds so much of it
  const std::lock_guard lock(mutex_);
  if (const std::size_t bytes = text.size(); bytes > most_bytes) {
    keep_warning(fmt::format("a message of the workload has {} bytes; the first {} are kept", bytes, most_bytes));
    text = cut_to(std::move(text), most_bytes);
  }
  message_ = std::move(text);
}

std::string PluginMessages::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(message_, {});
}

void PluginMessages::log(std::int32_t level, std::string_view text) {
  static constexpr const char* levels[] = {"debug", "info", "warning", "error"};
  const std::lock_guard lock(mutex_);
  if (level == 2) keep_warning(std::string(text));
  std::fprintf(stderr, "[plugin %s] %.*s\n", levels[level < 0 || level > 3 ? 1 : level], static_cast<int>(text.size()),
               text.data() ? text.data() : "");
}

void PluginMessages::warn(std::string text) {
  const std::lock_guard lock(mutex_);
  keep_warning(std::move(text));
}

// A workload may warn in each step: the first warnings are enough, and the log has the others.
void PluginMessages::keep_warning(std::string text) {
  constexpr std::size_t most_warnings = 8, most_chars = 1000;
  text = cut_to(std::move(text), most_chars);
  if (warnings_.size() < most_warnings && std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
    warnings_.push_back(std::move(text));
}

std::vector<std::string> PluginMessages::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

}  // namespace assay::host::worker
