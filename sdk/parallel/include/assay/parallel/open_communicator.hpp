// The communicator of a workload that trains.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/comm/silent.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/trainer.hpp>

namespace assay::parallel {

// Opens the communicator of these settings, which may be silenced. Collective. Throws assay::Error as
// comm::open_communicator does. Inline: what is compared with the library's C++ ABI is the plugin's own.
inline comm::SilenceableCommunicator open_communicator(const Host& host, const Launch& launch,
                                                       const CollectiveSettings& settings) {
  return comm::SilenceableCommunicator(comm::open_communicator(host, launch, settings.library, settings.options));
}

// With the trainer's gradients, whose memory has been taken.
inline void register_gradients(comm::Communicator& communicator, const train::Trainer& trainer) {
  communicator.register_memory(trainer.gradient_memory().data(), trainer.gradient_memory().bytes());
}
// The same in one.
inline comm::SilenceableCommunicator open_communicator(const Host& host, const Launch& launch,
                                                       const CollectiveSettings& settings,
                                                       const train::Trainer& trainer) {
  comm::SilenceableCommunicator communicator = open_communicator(host, launch, settings);
  register_gradients(*communicator, trainer);
  return communicator;
}

}  // namespace assay::parallel
