// Logs as launchers and pods hand them on: what they put before each line, and how the text is encoded.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::imports {

struct LogLine {
  std::string_view source;  // the rank, pod or container that the launcher names: "1,0", "0"; "" where it names none
  std::string_view time;    // "2025-03-14T08:00:01.123456789Z", where one stands before the line
  std::string_view text;    // what the program has printed
};

// Takes off what mpirun (`[1,0]<stdout>:`), srun -l (`0: `), MPICH (`[0] `), kubectl (`[pod/a/b] `, times) and
// docker compose (`name | `) put before a line, and its line end.
LogLine without_prefixes(std::string_view line);
// All lines of a text, which outlives them.
std::vector<LogLine> log_lines(std::string_view text);

// The words of a line, between blanks.
void split_words(std::string_view line, std::vector<std::string_view>& words);

// UTF-8 of a file as it was read: without a byte-order mark, and from UTF-16 (PowerShell's `>`), which its mark shows.
// Throws ImportError where UTF-16 is torn.
std::string as_utf8(std::string bytes);

}  // namespace assay::host::imports
