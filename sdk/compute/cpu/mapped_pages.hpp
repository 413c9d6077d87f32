// Memory as the CPU device hands it out: whole pages, huge ones where they can help, touched by the threads whose share
// they will be.
#pragma once
#include <cstddef>
#include <utility>

namespace assay::cpu {

// Pages for `bytes`, at least one, at an address that is aligned to them; nullptr, with errno, when the kernel refuses.
// `length`: what unmap_pages() wants.
void* map_pages(std::size_t bytes, std::size_t* length);
// Backs every page now, by the thread whose share it will be under a static schedule (first touch decides the node).
void touch_pages(void* address, std::size_t length);

// Under the address sanitizer a touch of what follows the bytes in their last page is reported from here on until
// unmap_pages(). Otherwise nothing.
void forbid_rest(void* address, std::size_t bytes, std::size_t length);
void unmap_pages(void* address, std::size_t length);

// The same as a value. Empty where there was none to be had.
class MappedPages {
 public:
  MappedPages() = default;
  explicit MappedPages(std::size_t bytes) : address_(map_pages(bytes, &length_)) {}
  MappedPages(MappedPages&& from) noexcept
      : length_(std::exchange(from.length_, 0)), address_(std::exchange(from.address_, nullptr)) {}
  MappedPages& operator=(MappedPages&& from) noexcept {
    std::swap(address_, from.address_);
    std::swap(length_, from.length_);
    return *this;
  }
  ~MappedPages();

  char* data() const { return static_cast<char*>(address_); }
  std::size_t size() const { return address_ ? length_ : 0; }

 private:
  std::size_t length_ = 0;
  void* address_ = nullptr;
};

}  // namespace assay::cpu
