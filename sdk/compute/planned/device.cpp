// The device table of a stand-in: memory that nobody may touch, streams and events without a device, and the extension
// by which the host says which device is stood in for.
#include <assay/device.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "common/device_guard.hpp"
#include "planned/listener.hpp"
#include "planned/planned_backend.hpp"

using assay::Error;
using assay::compute::fail;
using assay::compute::guard;
using assay::compute::last_error;

struct assay_device {
  std::map<void*, std::size_t> mapped_bytes;
};
struct assay_event {};

namespace assay::planned {
namespace {

struct StandIn {
  std::string name = "a device that was not described";
  std::uint64_t memory_total_bytes = 0;
  std::int32_t compute_units = 0;
};

// Of this process, as all of the table's functions are.
StandIn stand_in;
std::uint64_t held_bytes = 0, communicator_count = 0, refusal_count = 0;
assay_operation_listener listener = nullptr;
void* listener_context = nullptr;
std::vector<assay_planned_operation>* capture = nullptr;  // of a graph, under way

assay_status describe(const assay_stand_in* device) noexcept {
  return guard([&] {
    if (!device || !ASSAY_HAS(device, assay_stand_in, compute_units) || !device->name)
      throw Error(ASSAY_INVALID_ARGUMENT, "a stand-in without a name and its memory; expected a whole assay_stand_in");
    stand_in = {device->name, device->memory_total_bytes, device->compute_units};
  });
}
void listen(assay_operation_listener to, void* context) noexcept { listener = to, listener_context = context; }
void tell_listener(const assay_planned_operation* operation) noexcept {
  if (capture)
    capture->push_back(*operation);
  else if (listener)
    listener(listener_context, operation);
}
void tell_communicator() noexcept { ++communicator_count; }
std::uint64_t communicators() noexcept { return communicator_count; }
std::uint64_t refusals() noexcept { return refusal_count; }

constexpr assay_planning planning{sizeof(assay_planning), describe,      listen,  tell_listener,
                                  tell_communicator,      communicators, refusals};

}  // namespace

const assay_planning& planning_table() { return planning; }
void tell(const assay_planned_operation& operation) { tell_listener(&operation); }
void capture_into(std::vector<assay_planned_operation>* operations) { capture = operations; }

namespace {

const char* error_text() noexcept { return last_error; }
assay_status count(std::int32_t* out) noexcept {
  *out = 1;
  return ASSAY_OK;
}
assay_status open(std::int32_t, assay_device** out) noexcept {
  return guard([&] { *out = new assay_device; });
}
void release(assay_device* device, void* address) noexcept {
  const auto found = device->mapped_bytes.find(address);
  if (found == device->mapped_bytes.end()) return;
  munmap(address, found->second);
  held_bytes -= found->second;
  device->mapped_bytes.erase(found);
}
void close(assay_device* device) noexcept {
  if (!device) return;
  while (!device->mapped_bytes.empty()) release(device, device->mapped_bytes.begin()->first);
  delete device;
}
assay_status info(assay_device*, assay_device_info* out) noexcept {
  return guard([&] {
    if (!ASSAY_HAS(out, assay_device_info, libraries))
      throw Error(ASSAY_INVALID_ARGUMENT, "assay_device_info is too short; set struct_size");
    out->memory_total_bytes = stand_in.memory_total_bytes;
    out->memory_free_bytes = stand_in.memory_total_bytes - std::min(stand_in.memory_total_bytes, held_bytes);
    out->compute_units = stand_in.compute_units;
    out->reserved = 0;
    std::snprintf(out->name, sizeof out->name, "%s", stand_in.name.c_str());
    std::snprintf(out->libraries, sizeof out->libraries, "none: a stand-in");
    if (ASSAY_HAS(out, assay_device_info, bus_address)) out->bus_address[0] = '\0';
    if (ASSAY_HAS(out, assay_device_info, uuid)) out->uuid[0] = '\0';
  });
}
assay_status stream_create(assay_device*, void** out) noexcept {
  static char stream = 0;  // an address for whoever refuses the default stream
  *out = ASSAY_PLANS_CUDA ? &stream : nullptr;
  return ASSAY_OK;
}
void stream_destroy(assay_device*, void*) noexcept {}
assay_status stream_synchronize(assay_device*, void*) noexcept { return ASSAY_OK; }
assay_status event_create(assay_device*, assay_event** out) noexcept {
  return guard([&] { *out = new assay_event; });
}
void event_destroy(assay_device*, assay_event* event) noexcept { delete event; }
assay_status event_record(assay_device*, assay_event*, void*) noexcept { return ASSAY_OK; }
assay_status event_synchronize(assay_device*, assay_event*) noexcept { return ASSAY_OK; }
assay_status event_elapsed_ns(assay_device*, assay_event*, assay_event*, double* out) noexcept {
  *out = 1;  // no division by it fails
  return ASSAY_OK;
}

// Addresses without pages: the kernel keeps a note of the range, and whoever touches it is ended.
assay_status allocate(assay_device* device, std::size_t bytes, void** out) noexcept {
  return guard([&] {
    const std::size_t length = std::max<std::size_t>(bytes, 1);
    void* const address = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) {
      ++refusal_count;
      throw Error(ASSAY_OUT_OF_MEMORY,
                  "out of memory: " + std::to_string(bytes) + " bytes wanted, for which no address space has room");
    }
    try {
      device->mapped_bytes.emplace(address, length);
    } catch (...) {
      munmap(address, length);
      throw;
    }
    held_bytes += length;
    *out = address;
  });
}

compute::Backend* create_backend(assay_device*, void*) { return new PlannedBackend; }
constexpr compute::BackendFactory factory{compute::interface_id, create_backend};

const void* get_extension(const char* id) noexcept {
  if (std::strcmp(id, ASSAY_EXT_PLANNING) == 0) return &planning;
  if (std::strcmp(id, "assay.compute/1") == 0) return &factory;
  return nullptr;
}

}  // namespace
}  // namespace assay::planned

namespace planned = assay::planned;
extern "C" ASSAY_EXPORT const assay_device_api assay_device_v1 = {
    sizeof(assay_device_api),
    ASSAY_DEVICE_ABI_MAJOR,
    ASSAY_DEVICE_ABI_MINOR,
    ASSAY_PLANS_CUDA ? "cuda" : "cpu",
    ASSAY_BUILD_INFO,
    planned::error_text,
    planned::count,
    planned::open,
    planned::close,
    planned::info,
    planned::stream_create,
    planned::stream_destroy,
    planned::stream_synchronize,
    planned::event_create,
    planned::event_destroy,
    planned::event_record,
    planned::event_synchronize,
    planned::event_elapsed_ns,
    planned::allocate,
    planned::release,
    nullptr,
    nullptr,
    planned::get_extension,
};
