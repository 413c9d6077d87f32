// Memory that parameters are gathered from and to.
#pragma once
#include <assay/comm/memory_kinds.hpp>
#include <assay/comm/registered_memory.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <functional>
#include <optional>
#include <string>

namespace assay::parallel {

// Takes it into `memory`, which must outlive the communicator, also where this throws. Every rank calls it with as many
// bytes. Throws assay::Error: UNSUPPORTED where the communicator's library, or the machine, has not what `gathers` asks
// for.
inline void take_gather_memory(comm::CollectiveMemory& memory, const Host& host, comm::Communicator& communicator,
                               Gathers gathers, assay_memory_kind kind, std::size_t bytes, const std::string& label) {
  memory = comm::CollectiveMemory(host, communicator, comm::registration_of(gathers), kind, bytes, label);
  comm::require_registration("gathers", gathers, memory.registration(), communicator);
}

// For SetupMoments::parameter_memory: where parameters are gathered from memory of the communicator's, opens it, and
// takes that memory into `memory`. Empty where they are gathered from any: the trainer takes the memory. Empty
// `gathers` are chosen by `measure` first, and set, with what the communicator's options need for them. All that is
// named here must outlive the trainer's setup.
inline std::function<void*(std::size_t)> take_gathered_parameters(comm::CollectiveMemory& memory, RankSteps& steps,
                                                                  const Host& host, const Launch& launch,
                                                                  CollectiveSettings& settings,
                                                                  std::optional<Gathers>& gathers,
                                                                  const std::function<Gathers()>& measure) {
  if (gathers == Gathers::any_memory) return {};
  return [&, measure](std::size_t bytes) {
    if (!gathers) {
      gathers = measure();
      settings.options.copy_engines = gathers == Gathers::copy_engines;
    }
    open_communicator(steps, host, launch, settings);
    take_gather_memory(memory, host, steps.communicator(), *gathers, ASSAY_MEMORY_PARAMETERS, bytes, "parameters");
    return memory.data();
  };
}

// In SetupMoments::step_taken: opens the communicator unless the above has, registers the parameters' memory unless it
// is the communicator's, and that of the gradients.
inline void open_and_register(RankSteps& steps, const Host& host, const Launch& launch,
                              const CollectiveSettings& settings, Gathers gathers, const train::Trainer& trainer) {
  if (gathers == Gathers::any_memory) {
    if (!steps.communicate()) open_communicator(steps, host, launch, settings);
    steps.communicator().register_memory(trainer.parameter_memory(), trainer.parameter_memory_bytes());
  }
  register_gradients(steps.communicator(), trainer);
}

}  // namespace assay::parallel
