// What the host does for a workload besides measuring it: memory, progress, the marks of a captured step.
#pragma once
#include <assay/plugin/case.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace assay {

// Memory on the case's device, taken through the host, which accounts for it by kind. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const Host& host, assay_memory_kind kind, std::size_t bytes, std::string_view label)
      : memory_(host.extension<assay_memory>(ASSAY_EXT_MEMORY)), bytes_(bytes) {
    if (!memory_) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_MEMORY);
    if (const assay_status s = memory_->allocate(memory_, kind, bytes, to_abi(label), &address_); s != ASSAY_OK)
      throw Error(s, "");  // the host has the text
  }
  DeviceMemory(DeviceMemory&& o) noexcept
      : memory_(o.memory_), address_(std::exchange(o.address_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& o) noexcept {
    if (this != &o) {
      reset();
      memory_ = o.memory_;
      address_ = std::exchange(o.address_, nullptr);
      bytes_ = std::exchange(o.bytes_, 0);
    }
    return *this;
  }
  ~DeviceMemory() { reset(); }
  void reset() noexcept {
    if (address_) memory_->release(memory_, address_);
    address_ = nullptr, bytes_ = 0;
  }
  template <class T = void>
  T* data() const noexcept {
    return static_cast<T*>(address_);
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  const assay_memory* memory_ = nullptr;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

// Names a moment of the memory account: "after_setup", "before_step", ...
inline void memory_moment(const Host& host, std::string_view name) noexcept {
  if (const auto* m = host.extension<assay_memory>(ASSAY_EXT_MEMORY)) m->moment(m, to_abi(name));
}

// Reports the progress of a long set-up.
inline void report_progress(const Host& host, std::int64_t done, std::int64_t total) noexcept {
  if (const auto* p = host.extension<assay_progress>(ASSAY_EXT_PROGRESS)) p->report(p, done, total);
}

// Begins a part of setup() or verify(), "optimizer", which lasts until the next one begins or the call returns. The
// record has the time of each.
inline void begin_part(const Host& host, std::string_view name) noexcept {
  if (const auto* p = host.extension<assay_parts>(ASSAY_EXT_PARTS)) p->begin(p, to_abi(name));
}

// While it lives, phase marks belong to the step that is being captured.
class [[nodiscard]] CaptureMarks {
 public:
  explicit CaptureMarks(const Host& host) : capture_(host.extension<assay_capture>(ASSAY_EXT_CAPTURE)) {
    if (!capture_) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_CAPTURE);
    if (const assay_status s = capture_->begin(capture_); s != ASSAY_OK) throw Error(s, "");
  }
  CaptureMarks(const CaptureMarks&) = delete;
  CaptureMarks& operator=(const CaptureMarks&) = delete;
  ~CaptureMarks() { capture_->end(capture_); }

 private:
  const assay_capture* capture_;
};
// Call it in run(): the captured step was replayed.
inline void mark_replayed(const Host& host) noexcept {
  if (const auto* c = host.extension<assay_capture>(ASSAY_EXT_CAPTURE)) c->replayed(c);
}

}  // namespace assay
