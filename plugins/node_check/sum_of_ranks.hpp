// check = "all_reduce": the links between the ranks. A step sums a message over all ranks some times.
#pragma once
#include <assay/comm/collective_time.hpp>
#include <assay/comm/exact_data.hpp>
#include <assay/comm/message.hpp>
#include <assay/comm/pieces.hpp>
#include <assay/workload/spoiled_results.hpp>
#include <memory>

#include "check.hpp"
#include "findings.hpp"
#include "settings.hpp"

namespace node_check {

class SumOfRanks final : public Check {
 public:
  SumOfRanks(const assay::Host& host, const Settings& settings);  // throws assay::Error
  void setup(const Launch& launch) override;
  void run(const Launch& launch) override;
  void finish(const Launch& launch) override;
  void open_account(const Launch&) override { spoiled_.spoil(*backend_, {receive_}); }
  assay::Account account(const Launch& launch) override;
  std::string verify(const Launch& launch) override;
  assay::Work work() const override;

 private:
  assay::comm::Ticket enqueue();
  Findings compare(const assay::compute::Tensor& x, const std::vector<std::int32_t>& expected, const char* what) const;
  void spoil() const;

  assay::Host host_;
  Settings settings_;
  assay::comm::Message message_;
  assay::comm::ExactData exact_;
  std::unique_ptr<assay::compute::Backend> backend_;
  // The memory goes after the communicator, which may have registered it.
  assay::DeviceMemory send_memory_, receive_memory_;
  std::unique_ptr<assay::comm::Communicator> communicator_;
  assay::compute::Tensor send_, receive_;
  assay::comm::CollectiveTime time_;
  assay::workload::SpoiledResults spoiled_;
};

}  // namespace node_check
