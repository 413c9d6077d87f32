#include "assay/parallel/broadcast_parameters.hpp"

namespace assay::parallel {

void broadcast_parameters(const train::Trainer& trainer, comm::Communicator& communicator) {
  communicator.wait(communicator.broadcast(trainer.parameters().all_values(), 0));
  trainer.parameters().refresh_compute_copy(trainer.backend());
  communicator.synchronize();
  trainer.backend().synchronize();
}

}  // namespace assay::parallel
