// Memory that parameters are gathered from and to.
#pragma once
#include <assay/comm/registered_memory.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/parallel/open_communicator.hpp>
#include <functional>
#include <string>

namespace assay::parallel {

// Takes it into `memory`, which must outlive the communicator, also where this throws. Every rank calls it with as many
// bytes. Throws assay::Error: UNSUPPORTED where the communicator's library, or the machine, has not what `gathers` asks
// for.
inline void take_gather_memory(comm::CollectiveMemory& memory, const Host& host, comm::Communicator& communicator,
                               Gathers gathers, assay_memory_kind kind, std::size_t bytes, const std::string& label) {
  const comm::Registration best = gathers == Gathers::any_memory   ? comm::Registration::none
                                  : gathers == Gathers::registered ? comm::Registration::plain
                                                                   : comm::Registration::symmetric;
  memory = comm::CollectiveMemory(host, communicator, best, kind, bytes, label);
  if (memory.registration() != best)
    throw Error(ASSAY_UNSUPPORTED, "gathers = \"" + std::string(gather_choices.name_of(gathers)) + "\" needs " +
                                       (best == comm::Registration::plain ? "registered memory" : "symmetric windows") +
                                       ", and " + communicator.description() +
                                       " has none between these GPUs; leave it out");
}

// For SetupMoments::parameter_memory: where parameters are gathered from memory of the communicator's, opens it, and
// takes that memory into `memory`. Empty where they are gathered from any: the trainer takes the memory. All that is
// named here must outlive the trainer's setup.
inline std::function<void*(std::size_t)> take_gathered_parameters(comm::CollectiveMemory& memory, RankSteps& steps,
                                                                  const Host& host, const Launch& launch,
                                                                  const CollectiveSettings& settings, Gathers gathers) {
  if (gathers == Gathers::any_memory) return {};
  return [&, gathers](std::size_t bytes) {
    open_communicator(steps, host, launch, settings);
    take_gather_memory(memory, host, steps.communicator(), gathers, ASSAY_MEMORY_PARAMETERS, bytes, "parameters");
    return memory.data();
  };
}

// In SetupMoments::step_taken: opens the communicator unless the above has, registers the parameters' memory unless it
// is the communicator's, and that of the gradients.
inline void open_and_register(RankSteps& steps, const Host& host, const Launch& launch,
                              const CollectiveSettings& settings, Gathers gathers, const train::Trainer& trainer) {
  if (gathers == Gathers::any_memory) {
    open_communicator(steps, host, launch, settings);
    steps.communicator().register_memory(trainer.parameter_memory(), trainer.parameter_memory_bytes());
  }
  register_gradients(steps.communicator(), trainer);
}

}  // namespace assay::parallel
