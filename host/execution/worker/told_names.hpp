// What a workload with open tables adds to them while its case runs: assay.names/1.
#pragma once
#include <assay/abi.h>

#include <functional>
#include <string>

#include "plugin/schema.hpp"

namespace assay::host::worker {

// Not movable: plugins hold the address of its table.
class ToldNames {
 public:
  // `schema` gets the new rows, and outlives this object. `grown` is called after each; `say` gets the text of a
  // refusal.
  ToldNames(plugin::WorkloadSchema& schema, std::function<void()> grown,
            std::function<void(assay_status, std::string)> say);
  ToldNames(const ToldNames&) = delete;
  ToldNames& operator=(const ToldNames&) = delete;

  const assay_names* abi() const { return &table_; }
  const plugin::WorkloadSchema& schema() const { return schema_; }

 private:
  static ToldNames& from(const assay_names* names) { return *static_cast<ToldNames*>(names->impl); }
  assay_status refuse(std::string text);
  assay_status phase(std::string name, std::uint32_t& out);
  assay_status metric(const assay_metric& row, std::uint32_t& out);
  template <class F>
  assay_status guarded(F&& f) noexcept;

  plugin::WorkloadSchema& schema_;
  std::function<void()> grown_;
  std::function<void(assay_status, std::string)> say_;
  assay_names table_{};
};

}  // namespace assay::host::worker
