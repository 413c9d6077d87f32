// An owned file descriptor.
#pragma once
#include <unistd.h>

#include <utility>

namespace assay::host {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) noexcept : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  void reset() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }  // the caller closes it from here on
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace assay::host
