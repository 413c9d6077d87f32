// A line of options as the shell of a batch script splits it, for what is asked before there is a script.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::batch {

// With quotes and backslashes resolved and variables left as they are. Nothing where the shell would read more than
// words: a quote that is not closed; an operator, a pattern, braces or a comment outside of quotes; a command; or more
// of a variable than "$NAME" and "${NAME}".
std::optional<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace assay::host::batch
