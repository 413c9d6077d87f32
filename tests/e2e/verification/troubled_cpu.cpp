// libassay_device_cpu.so with the real one behind it, which
//   refuses any block of memory of more than TROUBLED_CPU_LARGEST_BLOCK bytes;
//   breaks what TROUBLED_CPU_BREAKS names: `attention` in some rows of contexts beyond 1024, `sgd` that does nothing.
#include <assay/device.h>
#include <dlfcn.h>

#include <assay/compute/forwarding_backend.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace {

using assay::compute::Backend;
using assay::compute::operation_cast;
using assay::compute::Tensor;
namespace op = assay::compute::op;

const assay_device_api& real_device() {
  static const auto* const api = [] {
    void* const library = dlopen(REAL_DEVICE, RTLD_NOW | RTLD_LOCAL);
    const void* const symbol = library ? dlsym(library, ASSAY_DEVICE_SYMBOL) : nullptr;
    if (!symbol) {
      std::fprintf(stderr, "the troubled CPU: %s\n", dlerror());
      std::abort();
    }
    return static_cast<const assay_device_api*>(symbol);
  }();
  return *api;
}

bool breaks(std::string_view what) {
  const char* const broken = std::getenv("TROUBLED_CPU_BREAKS");
  return broken && what == broken;
}

class TroubledBackend final : public assay::compute::ForwardingBackend {
 public:
  explicit TroubledBackend(std::unique_ptr<Backend> real) : ForwardingBackend(*real), owned_(std::move(real)) {}

  void set_mode(assay::compute::Mode mode) override {
    executes_ = mode == assay::compute::Mode::execute;
    real().set_mode(mode);
  }
  void run_any(const assay::compute::AnyOperation& any) override {
    if (executes_ && operation_cast<op::Sgd>(any) && breaks("sgd")) return;
    real().run_any(any);
    // Rows that no audit of some rows looks at.
    const auto* const attention = operation_cast<op::AttentionForward>(any);
    if (!attention || !executes_ || attention->q.dim(1) <= 1024 || !breaks("attention")) return;
    const Tensor& out = attention->out;
    for (std::int64_t row = 650; row < 730; ++row) {
      const Tensor one = out.slice(1, row, 1).view({out.dim(2) * out.dim(3)});
      real().run(op::Scale{.x = one, .factor = 0.5F, .out = one});
    }
  }

 private:
  std::unique_ptr<Backend> owned_;
  bool executes_ = true;
};

const assay::compute::BackendFactory& real_factory() {
  return *static_cast<const assay::compute::BackendFactory*>(real_device().get_extension("assay.compute/1"));
}

Backend* create(assay_device* device, void* stream) {
  return new TroubledBackend(std::unique_ptr<Backend>(real_factory().create(device, stream)));
}

const void* get_extension(const char* id) noexcept {
  static const assay::compute::BackendFactory factory{real_factory().interface_id, create};
  return std::string_view(id) == "assay.compute/1" ? &factory : real_device().get_extension(id);
}

thread_local bool refused = false;  // the last failure of this thread was ours

assay_device_api wrapped() {
  assay_device_api api = real_device();
  api.get_extension = get_extension;
  api.error_text = []() noexcept -> const char* {
    return refused ? "out of memory on the troubled CPU: the block is larger than it has" : real_device().error_text();
  };
  api.allocate = [](assay_device* device, std::size_t bytes, void** out) noexcept -> assay_status {
    const char* const most = std::getenv("TROUBLED_CPU_LARGEST_BLOCK");
    refused = most && bytes > std::strtoull(most, nullptr, 10);
    return refused ? ASSAY_OUT_OF_MEMORY : real_device().allocate(device, bytes, out);
  };
  return api;
}

}  // namespace

// Made when the library is opened.
extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = wrapped();
