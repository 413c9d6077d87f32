#include "mapped_pages.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace assay::cpu {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* map_anywhere(std::size_t length) {
  void* const address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : address;
}

// Maps one huge page too many and returns both ends.
void* map_huge_aligned(std::size_t length) {
  char* const wide = static_cast<char*>(map_anywhere(length + huge_page_bytes));
  if (!wide) return nullptr;
  const auto misalignment = reinterpret_cast<std::uintptr_t>(wide) % huge_page_bytes;
  const std::size_t head = misalignment ? huge_page_bytes - misalignment : 0;
  if (head) munmap(wide, head);
  munmap(wide + head + length, huge_page_bytes - head);
  madvise(wide + head, length, MADV_HUGEPAGE);  // advice: without it the pages are small, and nothing else changes
  return wide + head;
}

}  // namespace

void* map_pages(std::size_t bytes, std::size_t* length) {
  *length = std::max(page_bytes(), (bytes + page_bytes() - 1) / page_bytes() * page_bytes());
  return *length >= huge_page_bytes ? map_huge_aligned(*length) : map_anywhere(*length);
}

void touch_pages(void* address, std::size_t length) {
  auto* const first = static_cast<volatile char*>(address);
  const std::size_t step = page_bytes();
  const auto pages = static_cast<std::int64_t>(length / step);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < pages; ++i) first[static_cast<std::size_t>(i) * step] = 0;
}

#ifdef __SANITIZE_ADDRESS__
void forbid_rest(void* address, std::size_t bytes, std::size_t length) {
  __asan_poison_memory_region(static_cast<char*>(address) + bytes, length - bytes);
}
#else
void forbid_rest(void*, std::size_t, std::size_t) {}
#endif

void unmap_pages(void* address, std::size_t length) {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(address, length);  // other memory may be mapped there
#endif
  munmap(address, length);
}

MappedPages::~MappedPages() {
  if (address_) unmap_pages(address_, length_);
}

}  // namespace assay::cpu
