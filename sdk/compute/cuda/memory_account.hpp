// Reports to the host (assay.memory_account/1) what this library takes of the GPU's memory beside what it is asked to
// allocate. Plain C++: whoever takes the memory says how much it is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace assay::cuda {

// The extension's table when `id` names it, else null.
const void* memory_account_extension(const char* id) noexcept;

// Part of the account as long as it lives.
class AccountedBytes {
 public:
  AccountedBytes() = default;
  AccountedBytes(std::size_t bytes, const char* label) noexcept;  // `label`: static text
  AccountedBytes(AccountedBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)), label_(other.label_) {}
  AccountedBytes& operator=(AccountedBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(label_, other.label_);
    return *this;
  }
  ~AccountedBytes();

 private:
  std::size_t bytes_ = 0;
  const char* label_ = "";
};

}  // namespace assay::cuda
