// Extensions lie in separate files. Their functions leave the text of a failure where the device table's error_text()
// finds it: through the table's own guard, handed over with the request for the extension.
#pragma once
#include <assay/abi.h>

#include <type_traits>

namespace assay::compute {

// Runs `body(context)` and turns what it throws into a status.
using StatusGuard = assay_status (*)(void (*body)(void* context), void* context) noexcept;

template <class F>
assay_status guarded(StatusGuard guard, F&& f) noexcept {
  return guard([](void* context) { (*static_cast<std::remove_reference_t<F>*>(context))(); }, &f);
}

}  // namespace assay::compute
