// Numbers and text as people read them in a table, and the width they take on a screen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host {

// "128625408" -> "128,625,408"; groups the integer part of what starts with an optional sign and digits.
std::string group_thousands(std::string_view number);
// Rounded to `digits`, no digit of the integer part dropped: of 4 0.01235, 12.35, 12,346, 1.235e-06.
std::string significant_digits(double number, int digits);

// "3", "1, 3 and 5 to 9". `ascending`: sorted, without doubles, not empty.
std::string number_list(std::span<const std::int64_t> ascending);

// The note with '#' for each figure: 7.1, -1,243, 1.2e-06. Digits that belong to a word (bf16, sm_90) do not count, nor
// does a rank's number. Notes that differ in their figures alone have it in common.
std::string without_figures(std::string_view note);
// Returns whether `note` has the higher one of the first figures that differ between two notes of the same words. Their
// signs do not count.
bool has_higher_figures(std::string_view note, std::string_view than);
// The first figures that differ between two notes of the same words: "7.6% to 18.7%", or "".
std::string range_of_figures(std::string_view lowest, std::string_view highest);

// Columns on a terminal: UTF-8 is decoded; combining marks take none, East Asian and emoji two.
std::size_t display_width(std::string_view text);
// At most `width` columns, the end replaced by "…" when something is cut.
std::string fit_to_width(std::string_view text, std::size_t width);
// Control characters become spaces, so that a plugin's text can neither break a line nor drive the terminal.
std::string one_line(std::string_view text);

// Lines of at most `width` columns, broken at blanks; a longer word has its own line.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// `head`, and beside it `text` from column `indent` on, in as many lines as the width needs; a longer head has its own
// line. `width` 0: one line, however long. Each line ends with a line break.
std::string hanging(std::string_view head, std::string_view text, std::size_t indent, std::size_t width);

// Paragraphs broken anew for the width. A line that begins with a blank stays as it is; empty lines end a paragraph.
std::string refilled(std::string_view text, std::size_t width);

enum class Align { left, right };
std::string pad_to(std::string_view text, std::size_t width, Align align);

// A field of a CSV line as in RFC 4180: quoted when it holds a comma, a quote or a line break.
std::string csv_field(std::string_view text);

// "a,b" and "c" are a, b and c; what is empty between commas is left out.
std::vector<std::string> comma_separated(const std::vector<std::string>& texts);

}  // namespace assay::host
