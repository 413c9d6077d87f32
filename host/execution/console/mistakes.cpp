#include "console/mistakes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "common/exit_code.hpp"
#include "results/terminal.hpp"

namespace assay::host::console {

int report_mistakes(const std::vector<experiment::Mistake>& mistakes) {
  for (const experiment::Mistake& mistake : mistakes)
    fmt::print(stderr, "{}", results::line_on_terminal(mistake.to_string(), STDERR_FILENO));
  fmt::print(stderr, "{} mistake{}; nothing was started\n", mistakes.size(), mistakes.size() == 1 ? "" : "s");
  return exit_usage;
}

}  // namespace assay::host::console
