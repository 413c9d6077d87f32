// A command line without a shell: its words, and what stands in them for a parameter.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// The words of `line`, parted by blanks. '...' holds all as it stands; in "..." and outside of quotes a backslash holds
// the character behind it (in "..." of " and \ alone). Nothing else has a meaning: no variable, pattern or pipe. Throws
// assay::Error where a quote is not closed, naming `parameter`.
std::vector<std::string> words_of(std::string_view line, std::string_view parameter);

// `text` with {name} replaced by value(name), and {{name}} by {name}. A brace around anything but a name (letters,
// digits, '_' and '-', no digit in front) stands as it is. What `value` throws passes.
std::string filled(std::string_view text, const std::function<std::string(std::string_view name)>& value);

}  // namespace command
