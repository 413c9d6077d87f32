#include "library.hpp"

namespace assay::comm::nccl {

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce: return "all_reduce";
    case Operation::reduce_scatter: return "reduce_scatter";
    case Operation::reduce: return "reduce";
    case Operation::all_gather: return "all_gather";
    case Operation::broadcast: return "broadcast";
    case Operation::all_to_all: return "all_to_all";
    case Operation::all_to_all_v: return "all_to_all_v";
    case Operation::send_receive: return "send_receive";
    case Operation::send: return "send";
    case Operation::receive: return "receive";
  }
  return "?";
}

}  // namespace assay::comm::nccl
