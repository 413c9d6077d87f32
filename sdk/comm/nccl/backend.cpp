// What libassay_comm_nccl.so exports.
#include <fmt/format.h>

#include <assay/plugin.hpp>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "cuda_library.hpp"
#include "nccl_communicator.hpp"
#include "wire_up.hpp"

namespace assay::comm::nccl {
namespace {

// Every rank makes its communicators in the same order.
std::atomic<std::int64_t> communicators_made = 0;

void set_variable(const char* name, const char* value) { (void)setenv(name, value, /*overwrite=*/0); }

Communicator* create(const assay_comm& ranks, const assay_device_access& device, void* stream, const Options& options) {
  if (std::string_view(device.api->kind) != "cuda")
    throw Error(ASSAY_UNSUPPORTED,
                fmt::format("NCCL does not serve the memory of device '{}'; expected a CUDA device", device.api->kind));
  if (options.max_channels < 0)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("at most {} channels for NCCL; expected 1 or more, or 0 for NCCL's own choice",
                            options.max_channels));
  const Members members(ranks, options.members);
  const std::int64_t number = communicators_made++;
  std::unique_ptr<Library> library = make_cuda_library(stream, options.copy_engines);
  Library& asked = *library;  // lives as long as the session
  WiredUp made = wire_up(std::move(library), ranks, members, number, stream, options.max_channels, set_variable, {},
                         options.on_compute_stream);
  std::string description = fmt::format("NCCL {}", asked.version());
  if (options.max_channels > 0) description += fmt::format(", at most {} channels", options.max_channels);
  if (options.copy_engines) description += ", gathers by copy engines";
  if (options.on_compute_stream) description += ", on the compute stream";
  if (!made.note.empty()) description += "; " + made.note;
  return new NcclCommunicator(std::move(made.session), members.rank(), members.size(), std::move(description));
}

}  // namespace
}  // namespace assay::comm::nccl

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1{assay::comm::interface_id,
                                                                                assay::comm::nccl::create};
