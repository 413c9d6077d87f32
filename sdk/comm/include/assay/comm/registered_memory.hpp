// Memory of a communicator's library, registered with it and accounted for by the host; and memory of collectives that
// is either that or the host's own.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/plugin.hpp>

#include <memory>
#include <string>
#include <utility>

namespace assay::comm {

// Move-only. Must outlive the communicator, with which it is registered.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;
  // Every rank makes it with as many bytes. Throws assay::Error: UNSUPPORTED where the library has no such memory.
  RegisteredMemory(const Host& host, Communicator& communicator, Registration best, assay_memory_kind kind,
                   std::size_t bytes, std::string label)
      : account_(host.extension<assay_memory>(ASSAY_EXT_MEMORY)), kind_(kind), bytes_(bytes), label_(std::move(label)) {
    if (!account_) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_MEMORY);
    memory_ = communicator.allocate_registered(bytes, best);
    if (!memory_)
      throw Error(ASSAY_UNSUPPORTED, std::string(communicator.backend()) +
                                         " has no memory to register, as it sends from any; leave out what asks for "
                                         "registered memory, or take nccl on a GPU");
    report(static_cast<std::int64_t>(bytes_));
  }
  RegisteredMemory(RegisteredMemory&&) noexcept = default;
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(kind_, other.kind_);
    std::swap(bytes_, other.bytes_);
    std::swap(label_, other.label_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~RegisteredMemory() {
    if (memory_) report(-static_cast<std::int64_t>(bytes_));
  }
  void* data() const { return memory_ ? memory_->data() : nullptr; }
  Registration registration() const { return memory_ ? memory_->registration() : Registration::none; }

 private:
  void report(std::int64_t delta_bytes) const noexcept {
    account_->report(account_, kind_, delta_bytes, to_abi(label_));
  }

  const assay_memory* account_ = nullptr;
  assay_memory_kind kind_ = ASSAY_MEMORY_COMMUNICATION;
  std::size_t bytes_ = 0;
  std::string label_;
  std::unique_ptr<LibraryMemory> memory_;
};

// Move-only; must outlive the communicator.
class CollectiveMemory {
 public:
  CollectiveMemory() = default;
  // None: the host's memory. Else every rank makes it with as many bytes, and it throws as RegisteredMemory does.
  CollectiveMemory(const Host& host, Communicator& communicator, Registration best, assay_memory_kind kind,
                   std::size_t bytes, const std::string& label) {
    if (best != Registration::none)
      registered_ = RegisteredMemory(host, communicator, best, kind, bytes, label);
    else
      plain_ = DeviceMemory(host, kind, bytes, label);
  }
  void* data() const { return registered_.data() ? registered_.data() : plain_.data(); }
  Registration registration() const { return registered_.registration(); }

 private:
  DeviceMemory plain_;
  RegisteredMemory registered_;
};

}  // namespace assay::comm
