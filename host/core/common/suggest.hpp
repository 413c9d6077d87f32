// The known name that a mistyped one was meant to be.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::host {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (no part edited twice).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// Two neighbouring letters in each other's place, "rnu" of "run": a slip in a word of any length.
inline bool is_swap(std::string_view a, std::string_view b) {
  return a.size() == b.size() && a.size() > 1 && edit_distance(a, b) == 1 &&
         std::is_permutation(a.begin(), a.end(), b.begin());
}

// How many edits still make a typing slip of a word this long; a short word turns into any other with few edits.
inline std::size_t slip_limit(std::size_t length) { return length <= 3 ? 0 : length <= 5 ? 1 : length / 3; }

// The first of `known` that goes on after the word with a dash; else the nearest when it is near enough, upper and
// lower case being equal. Failing that, the one dotted name whose last part is `word`: "steps" is "measure.steps".
inline std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  const auto lower = [](std::string_view text) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  const std::string wanted = lower(word);
  // "a100" is the beginning of "a100-80gb", not a slip of "h100".
  for (const auto& name : known)
    if (!wanted.empty() && lower(name).starts_with(wanted + "-")) return name;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& name : known) {
    const std::size_t distance = edit_distance(wanted, lower(name));
    const bool is_slip = distance <= slip_limit(std::max(word.size(), name.size())) || is_swap(wanted, lower(name));
    if (!is_slip || (best && distance >= best_distance)) continue;
    best = name, best_distance = distance;
  }
  if (best) return best;
  for (const auto& name : known) {
    const auto dot = name.rfind('.');
    if (dot == std::string::npos || lower(name.substr(dot + 1)) != wanted) continue;
    if (best) return std::nullopt;
    best = name;
  }
  return best;
}

// What others call a statistic: "step.median_ms" is "step.p50_ms".
inline std::string with_usual_statistic(std::string word) {
  constexpr std::pair<std::string_view, std::string_view> usual[] = {
      {"median", "p50"}, {"average", "mean"}, {"avg", "mean"}, {"stddev", "std"}};
  for (const auto& [theirs, ours] : usual)
    if (const auto at = word.find(theirs); at != std::string::npos) return word.replace(at, theirs.size(), ours);
  return word;
}

// The one that a message proposes: the first that goes on after the word with a dot or an underscore ("tokens" is
// "tokens_per_s"), or else nearest(), also of what others call a statistic.
inline std::optional<std::string> proposed(std::string_view word, const std::vector<std::string>& known) {
  for (const auto& name : known)
    if (!word.empty() && name.size() > word.size() && name.starts_with(word) &&
        (name[word.size()] == '.' || name[word.size()] == '_'))
      return name;
  return nearest(with_usual_statistic(std::string(word)), known);
}

// The first letter of the word that is not ASCII, as bytes of UTF-8, and its number: "'е' (U+0435) is no ASCII letter".
// It is empty where there is none. Letters of other alphabets look like ours, and are not.
inline std::string foreign_letter(std::string_view word) {
  const auto is_foreign = [](char c) { return static_cast<unsigned char>(c) >= 0xC2; };
  const auto at = std::find_if(word.begin(), word.end(), is_foreign);
  if (at == word.end()) return "";
  const auto first = static_cast<unsigned char>(*at);
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  const std::string_view letter = word.substr(static_cast<std::size_t>(at - word.begin()), length);
  if (letter.size() != length) return "";
  unsigned number = first & (0xFFu >> (length + 1));
  for (const char c : letter.substr(1)) number = number << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return fmt::format("'{}' (U+{:04X}) is no ASCII letter", letter, number);
}

// "; did you mean 'x'?", or nothing.
inline std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const auto name = proposed(word, known);
  const std::string foreign = name ? foreign_letter(word) : "";
  return name ? fmt::format("{}{}; did you mean '{}'?", foreign.empty() ? "" : "; ", foreign, *name) : "";
}
// The same, and all that is known behind it, which may be long: "; did you mean 'x'? There are x, y", "; there are x,
// y".
inline std::string known_instead(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = did_you_mean(word, known);
  return fmt::format("{}{} {}", meant, meant.empty() ? "; there are" : " There are", fmt::join(known, ", "));
}

}  // namespace assay::host
