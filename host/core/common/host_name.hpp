// The name of this machine, where a name is for people and for telling machines apart.
#pragma once
#include <unistd.h>

#include <array>
#include <string>

namespace assay::host {

// "unknown" when the machine does not say.
inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace assay::host
