// Communicators of the Gloo library on threads or processes of this test, without a host.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/open_gloo.hpp"
#include "support/shared_comm.hpp"

namespace assay::test {

inline std::unique_ptr<comm::Communicator> open_test_gloo(const assay_comm& table) {
  return open_gloo(ASSAY_TEST_GLOO, table);
}

// Calls body(communicator, table) on a thread per rank. Rethrows what the first rank that failed threw.
inline void on_ranks(std::int32_t ranks, const std::function<void(comm::Communicator&, const assay_comm&)>& body,
                     std::int64_t timeout_ms = 60000) {
  SharedComm shared(ranks, timeout_ms);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      try {
        const auto communicator = open_test_gloo(shared.table(r));
        body(*communicator, shared.table(r));
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& e : errors)
    if (e) std::rethrow_exception(e);
}

}  // namespace assay::test
