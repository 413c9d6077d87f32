// The communicator of a workload that trains.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/train/trainer.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::parallel {

// Opens the communicator of these settings for `steps`, and records which it is. Collective. Throws assay::Error as
// comm::open_communicator does. Inline, so that the library's C++ ABI is compared with the plugin's.
inline void open_communicator(RankSteps& steps, const Host& host, const Launch& launch,
                              const CollectiveSettings& settings) {
  steps.use(comm::SilenceableCommunicator(comm::open_communicator(host, launch, settings.library, settings.options)));
  host.info(steps.communicator().description());
}

// Opens the one that gradients of so many replicas go by, after the other: of these ranks of the case, or of all where
// none are named. Collective.
inline void open_between_replicas(RankSteps& steps, const Host& host, const Launch& launch, CollectiveSettings settings,
                                  std::vector<std::int32_t> members, std::int32_t replicas) {
  const char* of = members.empty() ? "over all ranks of " : "between ";
  settings.options.members = std::move(members);
  steps.use_between_replicas(
      comm::SilenceableCommunicator(comm::open_communicator(host, launch, settings.library, settings.options)));
  host.info(of + std::to_string(replicas) + " replicas: " + steps.between_replicas()->description());
}

// With the trainer's gradients, whose memory has been taken.
inline void register_gradients(comm::Communicator& communicator, const train::Trainer& trainer) {
  communicator.register_memory(trainer.gradient_memory().data(), trainer.gradient_memory().bytes());
}
// The same in one.
inline void open_communicator(RankSteps& steps, const Host& host, const Launch& launch,
                              const CollectiveSettings& settings, const train::Trainer& trainer) {
  open_communicator(steps, host, launch, settings);
  register_gradients(steps.communicator(), trainer);
}

}  // namespace assay::parallel
