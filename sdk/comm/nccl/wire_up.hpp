// What the ranks exchange before NCCL is asked anything: where their GPUs are, and the id of the communicator.
#pragma once
#include <assay/comm.h>

#include <cstdint>
#include <memory>
#include <string>

#include "library.hpp"
#include "session.hpp"

namespace assay::comm::nccl {

struct WiredUp {
  std::shared_ptr<Session> session;
  std::string note;  // for the record: see Sharing; may be empty
};

// Every rank calls it with the same `number`, which distinguishes the communicators of one case. `set_variable` sets an
// environment variable unless it has a value. Throws assay::Error; without a text where the host has it already.
WiredUp wire_up(std::unique_ptr<Library> library, const assay_comm& ranks, const Members& members, std::int64_t number,
                Stream compute, std::int32_t max_channels, void (*set_variable)(const char* name, const char* value),
                Timing timing = {}, bool on_compute_stream = false);

}  // namespace assay::comm::nccl
