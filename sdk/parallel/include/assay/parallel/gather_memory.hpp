// Memory that parameters are gathered from and to.
#pragma once
#include <assay/comm/registered_memory.hpp>
#include <assay/parallel/communication_params.hpp>
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

}  // namespace assay::parallel
