// The state of this process that a library may change when it is loaded.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::validate {

struct ProcessState {
  std::size_t threads = 0;
  std::size_t children = 0;
  std::vector<std::string> descriptors;  // "7: /path"
  std::vector<std::string> handlers;     // of signals, in their order
  std::vector<std::string> environment;  // sorted
  std::string folder;

  static ProcessState now();
};

// In words; "" where nothing differs. What is more than before, not what is less.
std::string new_descriptors(const ProcessState& before, const ProcessState& after);
std::string changed_handlers(const ProcessState& before, const ProcessState& after);
std::string changed_environment(const ProcessState& before, const ProcessState& after);

// What the heap of this process holds.
std::size_t heap_bytes();

}  // namespace assay::host::validate
