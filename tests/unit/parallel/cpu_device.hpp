// The CPU's operations in this process, one backend for each thread that stands for a rank.
#pragma once
#include <assay/device.h>
#include <dlfcn.h>

#include <assay/compute/backend.hpp>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <vector>

namespace assay::test {

class CpuDevice {
 public:
  CpuDevice() {
    if (api().open(0, &device_) != ASSAY_OK) throw Error(ASSAY_UNSUPPORTED, "the CPU device does not open");
    const auto* const factory = static_cast<const compute::BackendFactory*>(api().get_extension("assay.compute/1"));
    backend_.reset(factory->create(device_, nullptr));
  }
  CpuDevice(const CpuDevice&) = delete;
  CpuDevice& operator=(const CpuDevice&) = delete;
  ~CpuDevice() {
    backend_.reset();
    for (void* const address : taken_) api().release(device_, address);
    api().close(device_);
  }

  compute::Backend& backend() { return *backend_; }
  void* take(std::size_t bytes) {
    void* address = nullptr;
    if (api().allocate(device_, bytes + 1, &address) != ASSAY_OK) throw Error(ASSAY_OUT_OF_MEMORY, "no memory");
    taken_.push_back(address);
    return address;
  }
  // Of NaN, so that what nobody has written shows.
  compute::Tensor tensor(compute::DType dtype, std::initializer_list<std::int64_t> dims) {
    compute::Tensor t(nullptr, dtype, dims);
    t.data = take(t.bytes());
    std::memset(t.data, 0xff, t.bytes());
    return t;
  }
  template <class T>
  compute::Tensor tensor(compute::DType dtype, std::initializer_list<std::int64_t> dims, const std::vector<T>& values) {
    const compute::Tensor t = tensor(dtype, dims);
    if (t.bytes() != values.size() * sizeof(T)) throw Error(ASSAY_INTERNAL, "values of another number");
    backend_->upload(t, values.data());
    return t;
  }
  template <class T = float>
  std::vector<T> values(const compute::Tensor& t) {
    std::vector<T> values(static_cast<std::size_t>(t.elements()));
    backend_->download(values.data(), t);
    return values;
  }
  // As a workload runs its step: prepared, and then carried out.
  template <class Step>
  void prepare(const Step& step) {
    backend_->set_mode(compute::Mode::prepare);
    step();
    backend_->set_mode(compute::Mode::execute);
    const std::size_t bytes = backend_->workspace_bytes();
    backend_->set_workspace(take(bytes), bytes);
  }

 private:
  static const assay_device_api& api() {
    static const auto* const api = [] {
      void* const library = dlopen(ASSAY_CPU_DEVICE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      if (!library) throw Error(ASSAY_UNSUPPORTED, dlerror());
      return static_cast<const assay_device_api*>(dlsym(library, ASSAY_DEVICE_SYMBOL));
    }();
    return *api;
  }

  assay_device* device_ = nullptr;
  std::unique_ptr<compute::Backend> backend_;
  std::deque<void*> taken_;
};

}  // namespace assay::test
