#include "memory_account.hpp"

#include <assay/memory_account.h>
#include <assay/plugin.hpp>

#include <atomic>
#include <cstring>

namespace assay::cuda {
namespace {

// One for all devices of the process: a worker has one case on one device.
std::atomic<const assay_memory*> account = nullptr;

void report(std::int64_t delta_bytes, const char* label) noexcept {
  if (const assay_memory* host = account.load(); host && delta_bytes != 0)
    host->report(host, ASSAY_MEMORY_WORKSPACE, delta_bytes, to_abi(label));
}

constexpr assay_memory_account extension{sizeof(assay_memory_account),
                                         [](assay_device*, const assay_memory* host) noexcept { account = host; }};

}  // namespace

const void* memory_account_extension(const char* id) noexcept {
  return std::strcmp(id, ASSAY_EXT_MEMORY_ACCOUNT) == 0 ? &extension : nullptr;
}

AccountedBytes::AccountedBytes(std::size_t bytes, const char* label) noexcept : bytes_(bytes), label_(label) {
  report(static_cast<std::int64_t>(bytes_), label_);
}
AccountedBytes::~AccountedBytes() { report(-static_cast<std::int64_t>(bytes_), label_); }

}  // namespace assay::cuda
