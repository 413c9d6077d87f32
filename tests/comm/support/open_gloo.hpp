// Opens libassay_comm_gloo.so as assay::comm::open_communicator does, without a host.
#pragma once
#include <assay/comm/communicator.hpp>

#include <memory>
#include <string>

namespace assay::test {

const comm::BackendFactory& gloo_factory(const std::string& library);

// The communicator of one rank; every rank must make one. `device_kind` is what the case is said to run on.
std::unique_ptr<comm::Communicator> open_gloo(const std::string& library, const assay_comm& table,
                                              const char* device_kind = "cpu", const comm::Options& options = {});

}  // namespace assay::test
