// check = "copy": the device's memory. A step copies a buffer to another one some times.
//
// Each copy moves the data by a third, round the end: after three copies it is in its place again, and after two it is
// not, so that memory which was not written holds what is wrong there. The next copy starts from what the last one has
// written. So an error of any copy of the run stays in the data, which is checked once, at the end.
#pragma once
#include <assay/compute/counted_backend.hpp>
#include <assay/workload/spoiled_results.hpp>
#include <memory>

#include "check.hpp"
#include "findings.hpp"
#include "settings.hpp"

namespace node_check {

class Copy final : public Check {
 public:
  Copy(const assay::Host& host, const Settings& settings);  // throws assay::Error
  void setup(const Launch& launch) override;
  void run(const Launch& launch) override;
  void open_account(const Launch& launch) override;
  assay::Account account(const Launch& launch) override;
  std::string verify(const Launch& launch) override;
  assay::Work work() const override;

 private:
  assay::compute::Tensor as_numbers(std::uint64_t buffer) const;
  const assay::compute::Tensor& newest() const { return buffers_[copies_ % 2]; }
  void enqueue_copy();
  Findings compare(const assay::compute::Tensor& buffer, std::uint64_t copies) const;
  std::uint64_t word(std::int64_t index, std::uint64_t copies) const;
  void spoil() const;

  assay::Host host_;
  Settings settings_;
  std::uint64_t pattern_;
  std::int64_t third_;  // words
  std::unique_ptr<assay::compute::CountedBackend> backend_;
  assay::DeviceMemory memory_[2];
  assay::compute::Tensor buffers_[2];
  assay::workload::SpoiledResults spoiled_;
  std::uint64_t copies_ = 0;
};

}  // namespace node_check
