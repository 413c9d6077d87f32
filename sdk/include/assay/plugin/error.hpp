// How the C++ layer reports errors, and text as it crosses the border.
#pragma once
#include <assay/abi.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace assay {

class ASSAY_EXPORT Error : public std::runtime_error {
 public:
  Error(assay_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  assay_status status() const noexcept { return status_; }

 private:
  assay_status status_;
};

constexpr assay_str to_abi(std::string_view s) noexcept { return {s.data(), s.size()}; }
constexpr std::string_view from_abi(assay_str s) noexcept {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}

}  // namespace assay
