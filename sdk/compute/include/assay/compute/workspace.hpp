// What precedes the steps: a backend finds its kernels, and gets the workspace that they want.
#pragma once
#include <assay/compute/backend.hpp>
#include <assay/plugin.hpp>

#include <cstdint>
#include <utility>

namespace assay::compute {

// The workspace of one backend, which has no other. A graph that was captured before more workspace was taken is of no
// use any longer: its operations know the old address.
class Workspace {
 public:
  // Walks through `enqueue` in Mode::prepare, in which no tensor is touched, and gives the backend as much workspace as
  // the operations prepared so far want. To be called as often as there are further operations; blocks where more is
  // wanted than before, since an earlier phase may still be at work in it. Whatever `enqueue` throws, the backend
  // executes afterwards. The object must outlive the backend's operations.
  template <class F>
  void prepare(const Host& host, Backend& backend, F&& enqueue) {
    backend.set_mode(Mode::prepare);
    try {
      std::forward<F>(enqueue)();
    } catch (...) {
      backend.set_mode(Mode::execute);  // what this throws was found first: an operation before the one that threw
      throw;
    }
    backend.set_mode(Mode::execute);
    const std::size_t wanted = backend.workspace_bytes();
    if (wanted <= memory_.bytes()) return;
    backend.synchronize();
    backend.set_workspace(nullptr, 0);  // should there be no memory for more
    memory_.reset();
    ++times_taken_;
    memory_ = DeviceMemory(host, ASSAY_MEMORY_WORKSPACE, wanted, "workspace");
    backend.set_workspace(memory_.data(), wanted);
  }
  // Gives the memory back, when the work is done: operations that want some are refused until the next prepare().
  void reset(Backend& backend) {
    backend.set_workspace(nullptr, 0);
    memory_.reset();
  }

  std::uint64_t times_taken() const { return times_taken_; }

 private:
  DeviceMemory memory_;
  std::uint64_t times_taken_ = 0;
};

}  // namespace assay::compute
