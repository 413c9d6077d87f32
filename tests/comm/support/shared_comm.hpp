// The table assay.comm/1 over memory that forked processes and threads share: ranks without a host.
#pragma once
#include <assay/comm.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::test {

// Make it before forking. Values are kept until the end: for tests and small programs.
class SharedComm {
 public:
  explicit SharedComm(std::int32_t ranks, std::int64_t timeout_ms = 30000);
  SharedComm(const SharedComm&) = delete;
  SharedComm& operator=(const SharedComm&) = delete;
  ~SharedComm();

  // The table of one rank; lives as long as this object.
  const assay_comm& table(std::int32_t rank) const { return views_[static_cast<std::size_t>(rank)].table; }
  std::int32_t ranks() const { return static_cast<std::int32_t>(views_.size()); }
  void set_aborted();
  // The text that the host would have been left with, by the last call of that rank that failed, in this process.
  const std::string& message(std::int32_t rank) const { return views_[static_cast<std::size_t>(rank)].message; }

 private:
  struct Arena;
  struct View {
    SharedComm* owner = nullptr;
    mutable std::string message;
    assay_comm table{};
  };
  static const View& view(const assay_comm* c) { return *static_cast<const View*>(c->impl); }

  void put(const std::string& key, const void* data, std::size_t bytes);
  bool find(const std::string& key, std::vector<char>& value);
  bool await(const std::string& key, std::int64_t timeout_ms, std::vector<char>& value);

  static assay_status set(const assay_comm*, assay_str key, const void* data, std::size_t bytes) noexcept;
  static assay_status get(const assay_comm*, assay_str key, std::int64_t timeout_ms, void* data, std::size_t capacity,
                          std::size_t* bytes) noexcept;
  static assay_status add(const assay_comm*, assay_str key, std::int64_t delta, std::int64_t* value) noexcept;
  static assay_status exchange(const assay_comm*, assay_str name, std::int64_t timeout_ms, const void* mine,
                               std::size_t bytes, void* all) noexcept;
  static std::int32_t aborted(const assay_comm*) noexcept;

  Arena* arena_ = nullptr;
  std::vector<View> views_;
};

}  // namespace assay::test
