// How long each part of a call takes that reports its parts (assay.parts/1).
#pragma once
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "record/case_record.hpp"

namespace assay::host::worker {

class PartTimes {
 public:
  static constexpr std::size_t most_name_bytes = 55, most_names = 64;

  // Of lower-case letters, digits and '_': a part is a column of tables, too.
  static bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= most_name_bytes && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
  }

  // Ends the part that is open. A name beyond the number that can be kept is not timed.
  void begin(std::string_view name) {
    end();
    if (!is_name(name)) return;
    open_ = find_or_add(name);
    open_name_ = name;
    begin_ = Clock::now();
  }
  void end() {
    if (open_ < seconds_.size()) seconds_[open_].second += std::chrono::duration<double>(Clock::now() - begin_).count();
    open_ = none;
    open_name_.clear();
  }
  // "" outside of every part.
  const std::string& open_name() const { return open_name_; }
  // In the order in which they began first. What follows begins anew.
  record::Named<double> take() {
    end();
    return std::exchange(seconds_, {});
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t find_or_add(std::string_view name) {
    for (std::size_t i = 0; i < seconds_.size(); ++i)
      if (seconds_[i].first == name) return i;
    if (seconds_.size() == most_names) return none;
    seconds_.emplace_back(name, 0.0);
    return seconds_.size() - 1;
  }

  record::Named<double> seconds_;
  std::size_t open_ = none;
  std::string open_name_;
  Clock::time_point begin_;
};

}  // namespace assay::host::worker
