// The kinds of values that settings have: how each is checked, written, and named in a message.
#pragma once
#include "common/value.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::experiment {

// `T` is what the host keeps the value as.
template <class T>
struct Kind {
  std::string expected;                                      // "an integer >= 0"
  std::function<std::optional<T>(const Value& found)> read;  // nothing when it is not one of these values
  std::function<Value(const T&)> write;                      // in the one form that reads back to the same
  std::vector<std::string> choices = {};                     // the words among the values
  bool quotes_default = true;                                // in a message, of a default that is a text
  std::string expected_of_empty = "";                        // see Setting
  std::function<std::string(const std::string&)> hint = {};  // see Setting
};

constexpr std::int64_t no_maximum = std::numeric_limits<std::int64_t>::max();

Kind<std::int64_t> integer(std::int64_t min, std::int64_t max = no_maximum);
Kind<std::uint64_t> unsigned_integer();  // as far as a file's integers go
Kind<double> share();                    // between 0 and 1, both excluded
Kind<bool> flag();
Kind<std::string> word(std::vector<std::string> words);
Kind<std::string> device_name();
Kind<std::string> any_text(std::string expected);
Kind<std::filesystem::path> folder();
Kind<std::chrono::milliseconds> duration();          // above 0
Kind<std::chrono::milliseconds> duration_or_none();  // 0: none
Kind<std::uint64_t> size_above_0();
Kind<std::uint64_t> size_from(std::uint64_t min_bytes);
Kind<std::int64_t> rank_count(std::int64_t max);      // or "auto", "all"
Kind<std::int64_t> per_node_count(std::int64_t max);  // or "auto"
Kind<std::int64_t> inner_count(std::int64_t max);     // or "auto"
Kind<std::string> ssh_host();                         // "n1", "user@n2:4"
Kind<std::string> node_names();                       // "n1", "n1+n2"

}  // namespace assay::host::experiment
