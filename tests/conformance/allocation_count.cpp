// The program's own malloc family stands before the C library's for every library that is loaded, and passes each call
// on. Under the address sanitizer, which has its own, the sanitizer's hook counts.
#include "allocation_count.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)  // by GCC
#define ASSAY_UNDER_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_UNDER_ADDRESS_SANITIZER
#endif
#endif

namespace {
std::atomic<std::uint64_t> calls{0};
void count() noexcept { calls.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

namespace assay::conformance {

#if defined(ASSAY_UNDER_ADDRESS_SANITIZER)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                                         void (*on_free)(const volatile void*));
std::uint64_t allocation_count() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { count(); }, [](const volatile void*) {});
  return installed ? calls.load() : ~calls.load();
}
#else
std::uint64_t allocation_count() { return calls.load(); }
#endif

}  // namespace assay::conformance

#if !defined(ASSAY_UNDER_ADDRESS_SANITIZER)
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
void __libc_free(void*) noexcept;

void* malloc(std::size_t bytes) noexcept {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) noexcept {
  count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  count();
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  count();
  void* const address = __libc_memalign(alignment, bytes);
  if (!address) return ENOMEM;
  *out = address;
  return 0;
}
void free(void* address) noexcept { __libc_free(address); }
}
#endif
