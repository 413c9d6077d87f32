// The text of a device table's last failure, and what turns exceptions into its statuses. Included by each device's
// table alone.
#pragma once
#include <assay/plugin.hpp>

#include <cstdio>
#include <new>

namespace assay::compute {

// Trivial storage: a thread that ends after the library is gone has nothing to run.
inline thread_local char last_error[1024] = "";

inline assay_status fail(assay_status status, const char* text) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", text);
  return status;
}

template <class F>
assay_status guard(F&& f) noexcept {
  try {
    f();
    return ASSAY_OK;
  } catch (const Error& e) {
    return fail(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return fail(ASSAY_OUT_OF_MEMORY,
                "the " ASSAY_DEVICE_LABEL " device has no host memory left for its own bookkeeping");
  } catch (const std::exception& e) {
    return fail(ASSAY_INTERNAL, e.what());
  }
}

}  // namespace assay::compute
