// The communicator of a workload that trains.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/comm/silent.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/trainer.hpp>

namespace assay::parallel {

// Opens the communicator of these settings, which may be silenced, and registers the trainer's gradients with it, whose
// memory has been taken. Collective. Throws assay::Error as comm::open_communicator does. Inline: what is compared with
// the library's C++ ABI is the plugin's own.
inline comm::SilenceableCommunicator open_communicator(const Host& host, const Launch& launch,
                                                       const CollectiveSettings& settings,
                                                       const train::Trainer& trainer) {
  comm::SilenceableCommunicator communicator(comm::open_communicator(host, launch, settings.library, settings.options));
  communicator->register_memory(trainer.gradient_memory().data(), trainer.gradient_memory().bytes());
  return communicator;
}

}  // namespace assay::parallel
