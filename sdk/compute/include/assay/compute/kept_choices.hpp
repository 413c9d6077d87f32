// Choices that a workload makes by timing on a device, such as of a collective's memory, kept where the device's own
// choices of algorithms are: in a file for each device, driver, limits and library, by the rules of ASSAY_ALGORITHMS.
#pragma once
#include <assay/comm.h>
#include <assay/device.h>

#include <assay/compute/cxx_abi.hpp>
#include <assay/plugin.hpp>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace assay::compute {

class KeptChoices {
 public:
  KeptChoices() = default;
  KeptChoices(const KeptChoices&) = delete;
  KeptChoices& operator=(const KeptChoices&) = delete;
  virtual ~KeptChoices() = default;

  // Empty where nothing was kept, or everything is to be timed anew.
  virtual std::optional<std::string> find(const std::string& key) = 0;
  // Throws assay::Error(UNSUPPORTED), with the remedy, where what was not kept must not be timed.
  virtual void refuse_to_choose(const std::string& key) const = 0;
  // `microseconds`: of the winner, round by round. The device keeps nothing that was timed beside somebody else's work.
  virtual void keep(const std::string& key, const std::string& choice, std::span<const double> microseconds) = 0;
  // Lists a choice that is used among the algorithms of the record.
  virtual void list(const std::string& key, const std::string& choice) = 0;
};

// The extension "assay.kept_choices/1" of a device table points to this.
struct KeptChoicesFactory {
  const char* interface_id;
  // Of choices of `kind` ("collectives") that depend on this device and `library`. Reads the file. Throws assay::Error.
  KeptChoices* (*open)(assay_device* device, const char* kind, const char* library);
};
inline constexpr const char* kept_choices_id = "assay.kept_choices/1 revision 1; " ASSAY_CXX_ABI;

// Null where the case's device keeps none, as the CPU, or has another revision of this interface: what it may have kept
// is measured again, which rank 0 notes once in a process. Throws UNSUPPORTED for such a device with
// ASSAY_ALGORITHMS=fixed, which lets nothing be measured.
inline std::unique_ptr<KeptChoices> open_kept_choices(const Host& host, const std::string& kind,
                                                      const std::string& library) {
  const auto* access = host.extension<assay_device_access>(ASSAY_EXT_DEVICE);
  if (!access || !access->api->get_extension) return nullptr;
  const auto* factory = static_cast<const KeptChoicesFactory*>(access->api->get_extension("assay.kept_choices/1"));
  if (!factory) return nullptr;
  if (const std::string difference =
          interface_difference(kept_choices_id, factory->interface_id, "the device's file of choices");
      !difference.empty()) {
    const char* algorithms = std::getenv("ASSAY_ALGORITHMS");
    if (algorithms && std::string_view(algorithms) == "fixed")
      throw Error(ASSAY_UNSUPPORTED, "ASSAY_ALGORITHMS=fixed, but the choices of " + kind +
                                         " that the device keeps are of another revision (" + difference +
                                         "); install a plugin and a device of one release, or unset it");
    static std::atomic<bool> is_said = false;
    const auto* ranks = host.extension<assay_comm>(ASSAY_EXT_COMM);
    if ((!ranks || ranks->rank == 0) && !is_said.exchange(true))
      host.warn("choices of " + kind + " that are kept are of another revision, and are measured again: " + difference);
    return nullptr;
  }
  return std::unique_ptr<KeptChoices>(factory->open(access->device, kind.c_str(), library.c_str()));
}

}  // namespace assay::compute
