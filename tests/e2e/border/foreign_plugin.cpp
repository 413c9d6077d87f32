// A plugin that uses the device's operations. The build compiles it with macros that change what strings or containers
// hold: it must not call the device's backend.
#include <assay/compute/backend.hpp>
#include <assay/workload/open_backend.hpp>

#include <memory>

namespace {

struct Foreign {
  static constexpr auto id = "foreign", summary = "opens the compute backend of its device";
  explicit Foreign(const assay::Case& c) : host_(c.host()) {}
  void setup(const assay::Launch& launch) { backend_ = assay::workload::open_backend(host_, launch); }
  void run(const assay::Launch&) { backend_->synchronize(); }

 private:
  assay::Host host_;
  std::unique_ptr<assay::compute::Backend> backend_;
};

}  // namespace

ASSAY_PLUGIN("org.assay.test.foreign", "1.0.0", Foreign)
