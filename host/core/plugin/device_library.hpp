// One loaded device backend (libassay_device_<kind>.so), and the device it drives.
#pragma once
#include <assay/device.h>

#include "plugin/entry_check.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace assay::host::plugin {

class DeviceLibrary {
 public:
  // Throws PluginError that names the file or says which folders were searched for the kind.
  static std::shared_ptr<const DeviceLibrary> open(const std::filesystem::path& file);

  // The backend's table, in the length of this host's header. A field that the backend's own table does not reach is
  // NULL, but get_extension, which then gives NULL for every id.
  const assay_device_api& api() const { return api_; }
  const std::filesystem::path& file() const { return file_; }

  DeviceLibrary(const DeviceLibrary&) = delete;
  DeviceLibrary& operator=(const DeviceLibrary&) = delete;
  ~DeviceLibrary();

 private:
  struct Handle;
  DeviceLibrary(std::filesystem::path file, std::unique_ptr<Handle> handle, const assay_device_api& given);

  std::filesystem::path file_;
  std::unique_ptr<Handle> handle_;
  assay_device_api api_;
};

// A failure that a device reported; `status` is the table's own.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(assay_status status, const std::string& text, std::string cause = "")
      : std::runtime_error(text), status_(status), cause_(std::move(cause)) {}
  assay_status status() const { return status_; }
  const std::string& cause() const { return cause_; }  // the backend's own text; "" where the host found the failure

 private:
  assay_status status_;
  std::string cause_;
};

// A device is opened for work, with its own stream, or for observation while other processes work on it: then it has no
// stream, and no context where the backend can do without one (assay.observation/1).
enum class Purpose { work, observation };

// An opened device with the stream that a case runs on. The thread that made it uses it.
class OpenDevice {
 public:
  // Throws DeviceError.
  OpenDevice(std::shared_ptr<const DeviceLibrary> library, std::int32_t ordinal, Purpose purpose = Purpose::work);
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;
  ~OpenDevice();

  const assay_device_api& api() const { return library_->api(); }
  assay_device* handle() const { return device_; }
  void* stream() const { return stream_; }  // null where it is observed
  bool is_observed() const { return purpose_ == Purpose::observation; }
  std::int32_t ordinal() const { return ordinal_; }
  assay_device_info info() const;
  // Throws DeviceError with the backend's text when `status` is not ASSAY_OK.
  void check(assay_status status, const char* doing) const;

 private:
  std::shared_ptr<const DeviceLibrary> library_;
  Purpose purpose_;
  assay_device* device_ = nullptr;
  void* stream_ = nullptr;
  std::int32_t ordinal_;
};

}  // namespace assay::host::plugin
