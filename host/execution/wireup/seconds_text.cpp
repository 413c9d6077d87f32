#include "wireup/seconds_text.hpp"

#include <fmt/format.h>

namespace assay::host::wireup {

std::string seconds_text(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace assay::host::wireup
