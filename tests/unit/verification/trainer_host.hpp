// A host for trainers in this process: the CPU device with its memory, which may run short when a verification asks for
// more, and operations that a test may break. One at a time.
#pragma once
#include <assay/device.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <assay/compute/forwarding_backend.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>

namespace assay::test {

// A backend that breaks something in another one, which it owns.
class BrokenBackend : public compute::ForwardingBackend {
 public:
  explicit BrokenBackend(std::unique_ptr<compute::Backend> real) : ForwardingBackend(*real), owned_(std::move(real)) {}
  void set_mode(compute::Mode mode) override {
    executes_ = mode == compute::Mode::execute;
    real().set_mode(mode);
  }

 protected:
  bool executes() const { return executes_; }

 private:
  std::unique_ptr<compute::Backend> owned_;
  bool executes_ = true;
};

class TrainerHost {
 public:
  using Make = std::function<std::unique_ptr<compute::Backend>(std::unique_ptr<compute::Backend>)>;

  explicit TrainerHost(Make make = [](std::unique_ptr<compute::Backend> real) { return real; })
      : make_(std::move(make)) {
    present() = this;
    EXPECT_EQ(real().open(0, &device_), ASSAY_OK);
    device_table_ = real();
    device_table_.get_extension = [](const char* id) noexcept -> const void* {
      static const compute::BackendFactory factory{compute::interface_id, create};
      return std::string_view(id) == "assay.compute/1" ? &factory : real().get_extension(id);
    };
    access_ = {sizeof access_, &device_table_, device_};
    memory_.struct_size = sizeof memory_;
    memory_.allocate = [](const assay_memory*, assay_memory_kind, std::size_t bytes, assay_str label,
                          void** out) noexcept -> assay_status {
      const bool of_verification = std::string_view(label.data, label.size) == "verification";
      if (of_verification && bytes > present()->most_of_verification) return ASSAY_OUT_OF_MEMORY;
      return real().allocate(present()->device_, bytes, out);
    };
    memory_.release = [](const assay_memory*, void* address) noexcept { real().release(present()->device_, address); };
    memory_.report = [](const assay_memory*, assay_memory_kind, std::int64_t, assay_str) noexcept {};
    memory_.moment = [](const assay_memory*, assay_str) noexcept {};
    abi_.struct_size = sizeof abi_;
    abi_.log = [](const assay_host*, std::int32_t, assay_str) noexcept {};
    abi_.get_extension = [](const assay_host*, const char* id) noexcept -> const void* {
      if (std::string_view(id) == ASSAY_EXT_DEVICE) return &present()->access_;
      return std::string_view(id) == ASSAY_EXT_MEMORY ? &present()->memory_ : nullptr;
    };
    launch_.struct_size = sizeof launch_;
  }
  TrainerHost(const TrainerHost&) = delete;
  TrainerHost& operator=(const TrainerHost&) = delete;
  ~TrainerHost() { real().close(device_); }

  Host host() const { return Host(&abi_); }
  Launch launch() const { return Launch(&launch_); }

  std::size_t most_of_verification = std::numeric_limits<std::size_t>::max();  // bytes at a time

 private:
  static TrainerHost*& present() {
    static TrainerHost* host = nullptr;
    return host;
  }
  static const assay_device_api& real() {
    static const auto* const api = [] {
      void* const library = dlopen(ASSAY_CPU_DEVICE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      if (!library) throw Error(ASSAY_UNSUPPORTED, dlerror());
      return static_cast<const assay_device_api*>(dlsym(library, ASSAY_DEVICE_SYMBOL));
    }();
    return *api;
  }
  static compute::Backend* create(assay_device* device, void* stream) {
    const auto* const factory = static_cast<const compute::BackendFactory*>(real().get_extension("assay.compute/1"));
    return present()->make_(std::unique_ptr<compute::Backend>(factory->create(device, stream))).release();
  }

  Make make_;
  assay_device* device_ = nullptr;
  assay_device_api device_table_{};
  assay_device_access access_{};
  assay_memory memory_{};
  assay_host abi_{};
  assay_launch launch_{};
};

template <class Broken, class... Settings>
TrainerHost::Make broken(Settings... settings) {
  return [=](std::unique_ptr<compute::Backend> real) {
    return std::unique_ptr<compute::Backend>(std::make_unique<Broken>(std::move(real), settings...));
  };
}

// A small decoder that trains.
inline models::DecoderTrainerConfig small_trainer() {
  models::DecoderTrainerConfig c;
  c.model.d_model = 32, c.model.d_ff = 64, c.model.layers = 2, c.model.heads = 2;
  c.model.vocab_size = 96, c.model.batch_size = 4, c.model.context_length = 24;
  return c;
}

inline void set_up(models::DecoderTrainer& trainer, const TrainerHost& host) {
  trainer.setup(host.launch(), [&] {
    trainer.forward();
    trainer.backward();
    trainer.update();
  });
}

// What a check throws as WRONG_RESULT; "" where it passes.
inline std::string wrong_result_of(const std::function<void()>& check) {
  try {
    check();
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_WRONG_RESULT) << e.what();
    return e.what();
  }
}

}  // namespace assay::test
