// libassay_comm_gloo.so and libassay_comm_nccl.so of the folder lib/assay/planned: ranks that do not exist. A
// collective reports itself to the planner and moves nothing.
#include <assay/device.h>
#include <assay/planning.h>
#include <assay/comm/communicator.hpp>
#include <assay/comm/members.hpp>

#include <limits>

namespace assay::comm {
namespace {

class PlannedMemory final : public LibraryMemory {
 public:
  PlannedMemory(const assay_device_access& device, std::size_t bytes, Registration registration)
      : device_(device), registration_(registration) {
    if (const assay_status s = device.api->allocate(device.device, bytes, &address_); s != ASSAY_OK)
      throw Error(s, device.api->error_text());
  }
  ~PlannedMemory() override { device_.api->release(device_.device, address_); }
  void* data() const override { return address_; }
  Registration registration() const override { return registration_; }

 private:
  const assay_device_access& device_;
  const Registration registration_;
  void* address_ = nullptr;
};

class PlannedCommunicator final : public Communicator {
 public:
  PlannedCommunicator(const Members& members, const assay_device_access& device, const assay_planning& planning,
                      std::string backend)
      : device_(device),
        planning_(planning),
        rank_(members.rank()),
        size_(members.size()),
        backend_(std::move(backend)) {
    planning_.tell_communicator();
  }

  const char* backend() const override { return backend_.c_str(); }
  std::string description() const override { return backend_ + ", planned"; }
  std::int32_t rank() const override { return rank_; }
  std::int32_t size() const override { return size_; }
  void register_memory(void*, std::size_t) override {}

  // What a rank has to send, whatever the algorithm, even if the switch adds and copies. For a sum: its terms of the
  // other ranks' parts, and the result of its own part once. For a gathering: its own part once.
  Ticket all_reduce(const compute::Tensor& send, const compute::Tensor&, Reduction) override {
    return report("all_reduce", size_ > 1 ? send.bytes() : 0);
  }
  Ticket reduce_scatter(const compute::Tensor& send, const compute::Tensor&, Reduction) override {
    const auto ranks = static_cast<std::uint64_t>(size_);
    return report("reduce_scatter", send.bytes() / ranks * (ranks - 1));
  }
  Ticket reduce(const compute::Tensor& x, std::int32_t root, Reduction) override {
    return report("reduce", root == rank_ ? 0 : x.bytes());
  }
  Ticket all_gather(const compute::Tensor& send, const compute::Tensor&) override {
    return report("all_gather", size_ > 1 ? send.bytes() : 0);
  }
  Ticket broadcast(const compute::Tensor& x, std::int32_t root) override {
    return report("broadcast", root == rank_ && size_ > 1 ? x.bytes() : 0);
  }
  Ticket all_to_all(const compute::Tensor& send, const compute::Tensor&) override {
    const auto ranks = static_cast<std::uint64_t>(size_);
    return report("all_to_all", send.bytes() / ranks * (ranks - 1));
  }
  Ticket all_to_all_v(const compute::Tensor& send, std::span<const std::int64_t> send_rows, const compute::Tensor&,
                      std::span<const std::int64_t>) override {
    const auto own = static_cast<std::size_t>(send_rows[static_cast<std::size_t>(rank_)]);
    return report("all_to_all_v", send.bytes() - own * row_bytes(send));
  }
  Ticket send_receive(const compute::Tensor& send, std::int32_t to, const compute::Tensor&, std::int32_t) override {
    return report("send_receive", to == rank_ ? 0 : send.bytes());
  }
  // A rank's link carries both ways at once: what it receives another rank sends.
  Ticket send(const compute::Tensor& x, std::int32_t) override { return report("send", x.bytes()); }
  Ticket receive(const compute::Tensor&, std::int32_t) override { return report("receive", 0); }
  // Collectives of a graph are reported when the graph is launched, like the operations in it.
  bool captures() const override { return backend_ == "nccl"; }
  std::unique_ptr<LibraryMemory> allocate_registered(std::size_t bytes, Registration best) override;
  Ticket end_series() override { return ticket_; }
  void wait(Ticket) override {}
  void synchronize() override {}
  void barrier() override {}
  Totals take_totals() override { return std::exchange(totals_, Totals{}); }

 private:
  Ticket report(const char* name, std::uint64_t bytes) {
    const assay_planned_operation operation{sizeof operation,          name, ASSAY_OPERATION_COLLECTIVE,
                                            ASSAY_ARITHMETIC_UNSTATED, 0,    bytes};
    planning_.tell(&operation);
    ++totals_.collectives;
    totals_.bytes += bytes;
    return ++ticket_;
  }

  const assay_device_access& device_;
  const assay_planning& planning_;
  std::int32_t rank_, size_;
  std::string backend_;
  Totals totals_;
  Ticket ticket_ = 0;
};

std::unique_ptr<LibraryMemory> PlannedCommunicator::allocate_registered(std::size_t bytes, Registration best) {
  if (backend_ != "nccl") return nullptr;
  return std::make_unique<PlannedMemory>(device_, bytes, best);
}

Communicator* create(const assay_comm& comm, const assay_device_access& device, void*, const Options& options) {
  const auto* planning = static_cast<const assay_planning*>(device.api->get_extension(ASSAY_EXT_PLANNING));
  if (!planning)
    throw Error(ASSAY_UNSUPPORTED,
                "this communicator plans, and the case runs on a device that carries operations "
                "out; leave ASSAY_COMM_PATH to the installation");
  const bool is_cuda = std::string(device.api->kind) == "cuda";
  if (!is_cuda && options.copy_engines)
    throw Error(ASSAY_UNSUPPORTED, "gloo has no copy engines to gather by; take comm = \"nccl\" on a GPU");
  if (!is_cuda && options.on_compute_stream)
    throw Error(ASSAY_UNSUPPORTED, "gloo has no streams to put a collective on; leave out stream = \"compute\"");
  return new PlannedCommunicator(Members(comm, options.members), device, *planning, is_cuda ? "nccl" : "gloo");
}

}  // namespace
}  // namespace assay::comm

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1;
extern "C" constinit const assay::comm::BackendFactory assay_comm_backend_v1 = {assay::comm::interface_id,
                                                                                assay::comm::create};
