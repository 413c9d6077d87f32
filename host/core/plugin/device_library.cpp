#include "plugin/device_library.hpp"

#include <assay/observation.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "plugin/shared_object.hpp"

namespace assay::host::plugin {
namespace {

// The host cannot do without these fields. Whatever comes after them it uses where the table has it.
constexpr std::size_t device_api_size_min = offsetof(assay_device_api, release) + sizeof(assay_device_api::release);

const void* offers_nothing(const char*) noexcept { return nullptr; }

// A table as long as this host's header has it, whatever the header that the backend was compiled against.
assay_device_api completed(const assay_device_api& given) {
  assay_device_api api{};
  std::memcpy(&api, &given, std::min(given.struct_size, sizeof api));
  api.struct_size = sizeof api;
  if (!api.get_extension) api.get_extension = offers_nothing;
  return api;
}

}  // namespace

struct DeviceLibrary::Handle {
  boost::dll::shared_library library;
};

DeviceLibrary::DeviceLibrary(std::filesystem::path file, std::unique_ptr<Handle> handle, const assay_device_api& given)
    : file_(std::move(file)), handle_(std::move(handle)), api_(completed(given)) {}
DeviceLibrary::~DeviceLibrary() = default;

std::shared_ptr<const DeviceLibrary> DeviceLibrary::open(const std::filesystem::path& file) {
  auto handle = std::make_unique<Handle>();
  handle->library = open_shared_object(file, file.string(), "install what this device backend needs");
  if (!handle->library.has(ASSAY_DEVICE_SYMBOL))
    throw PluginError(
        fmt::format("{}: does not export '" ASSAY_DEVICE_SYMBOL
                    "'; either it is no assay device backend, or it was built for another major version of the device "
                    "ABI than this host's {}; install the backend that came with this host",
                    file.string(), ASSAY_DEVICE_ABI_MAJOR));
  const assay_device_api* api = &handle->library.get<const assay_device_api>(ASSAY_DEVICE_SYMBOL);
  if (api->struct_size < device_api_size_min)
    throw PluginError(fmt::format(
        "{}: its device table has struct_size {}, less than the {} bytes that a host needs; rebuild the backend "
        "against a released SDK",
        file.string(), api->struct_size, device_api_size_min));
  if (api->abi_major != ASSAY_DEVICE_ABI_MAJOR)
    throw PluginError(
        fmt::format("{}: its device table is of version {}.{}, this host needs {}.{}; install the backend "
                    "that came with this host",
                    file.string(), api->abi_major, api->abi_minor, ASSAY_DEVICE_ABI_MAJOR, ASSAY_DEVICE_ABI_MINOR));
  return std::shared_ptr<const DeviceLibrary>(new DeviceLibrary(file, std::move(handle), *api));
}

OpenDevice::OpenDevice(std::shared_ptr<const DeviceLibrary> library, std::int32_t ordinal, Purpose purpose)
    : library_(std::move(library)), purpose_(purpose), ordinal_(ordinal) {
  std::int32_t count = 0;
  check(api().count(&count), "counting devices");
  if (ordinal >= count)
    throw DeviceError(ASSAY_UNSUPPORTED,
                      fmt::format("{} device {} was asked for, but there are {}", api().kind, ordinal, count));
  if (is_observed()) {
    const auto* observation = static_cast<const assay_observation*>(api().get_extension(ASSAY_EXT_OBSERVATION));
    const bool is_offered = observation && ASSAY_HAS(observation, assay_observation, open);
    check((is_offered ? observation->open : api().open)(ordinal, &device_), "opening the device");
    return;
  }
  check(api().open(ordinal, &device_), "opening the device");
  if (const assay_status s = api().stream_create(device_, &stream_); s != ASSAY_OK) {
    const std::string text = api().error_text();
    api().close(device_);
    throw DeviceError(s, fmt::format("{} device {}: creating a stream: {}", api().kind, ordinal, text));
  }
}

OpenDevice::~OpenDevice() {
  if (!is_observed()) api().stream_destroy(device_, stream_);
  api().close(device_);
}

assay_device_info OpenDevice::info() const {
  assay_device_info info{};
  info.struct_size = sizeof info;
  check(api().info(device_, &info), "asking for its name and memory");
  return info;
}

void OpenDevice::check(assay_status status, const char* doing) const {
  if (status == ASSAY_OK) return;
  const std::string cause = api().error_text();
  throw DeviceError(status, fmt::format("{} device {}: {}: {}", api().kind, ordinal_, doing, cause), cause);
}

}  // namespace assay::host::plugin
