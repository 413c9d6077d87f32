// libassay_comm_gloo.so that counts: the real communicator over Gloo, which adds the bytes of each collective to the
// file that COUNTED_BYTES_FILE names, one line a call.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <assay/comm/communicator.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

using assay::comm::Reduction;
using assay::comm::Ticket;
using assay::compute::Tensor;

const assay::comm::BackendFactory& real_factory() {
  static const auto& factory = *[] {
    void* library = dlopen(REAL_COMMUNICATOR, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void* found = library ? dlsym(library, "assay_comm_backend_v1") : nullptr;
    if (!found) std::abort();
    return static_cast<const assay::comm::BackendFactory*>(found);
  }();
  return factory;
}

// Ranks write the same file: each line is one call of the kernel.
void count(std::size_t bytes) {
  static const int file = open(std::getenv("COUNTED_BYTES_FILE"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const std::string line = std::to_string(bytes) + "\n";
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
}

class CountedCommunicator final : public assay::comm::Communicator {
 public:
  explicit CountedCommunicator(std::unique_ptr<Communicator> real) : real_(std::move(real)) {}

  const char* backend() const override { return real_->backend(); }
  std::string description() const override { return real_->description(); }
  std::int32_t rank() const override { return real_->rank(); }
  std::int32_t size() const override { return real_->size(); }
  void register_memory(void* address, std::size_t bytes) override { real_->register_memory(address, bytes); }
  void begin_series() override { real_->begin_series(); }
  Ticket end_series() override { return real_->end_series(); }
  void wait(Ticket ticket) override { real_->wait(ticket); }
  void synchronize() override { real_->synchronize(); }
  assay::comm::Totals take_totals() override { return real_->take_totals(); }

  // A barrier moves no data, and is yet a word to the others.
  void barrier() override {
    count(1);
    real_->barrier();
  }
  Ticket all_reduce(const Tensor& send, const Tensor& receive, Reduction reduction) override {
    count(send.bytes());
    return real_->all_reduce(send, receive, reduction);
  }
  Ticket reduce_scatter(const Tensor& send, const Tensor& receive, Reduction reduction) override {
    count(send.bytes());
    return real_->reduce_scatter(send, receive, reduction);
  }
  Ticket all_gather(const Tensor& send, const Tensor& receive) override {
    count(receive.bytes());
    return real_->all_gather(send, receive);
  }
  Ticket reduce(const Tensor& x, std::int32_t root, Reduction reduction) override {
    count(x.bytes());
    return real_->reduce(x, root, reduction);
  }
  Ticket broadcast(const Tensor& x, std::int32_t root) override {
    count(x.bytes());
    return real_->broadcast(x, root);
  }
  Ticket all_to_all(const Tensor& send, const Tensor& receive) override {
    count(send.bytes());
    return real_->all_to_all(send, receive);
  }
  Ticket all_to_all_v(const Tensor& send, std::span<const std::int64_t> send_rows, const Tensor& receive,
                      std::span<const std::int64_t> receive_rows) override {
    count(std::max(send.bytes(), receive.bytes()));
    return real_->all_to_all_v(send, send_rows, receive, receive_rows);
  }
  Ticket send_receive(const Tensor& send, std::int32_t to, const Tensor& receive, std::int32_t from) override {
    count(send.bytes());
    return real_->send_receive(send, to, receive, from);
  }
  Ticket send(const Tensor& x, std::int32_t to) override {
    count(x.bytes());
    return real_->send(x, to);
  }
  Ticket receive(const Tensor& x, std::int32_t from) override {
    count(x.bytes());
    return real_->receive(x, from);
  }

 private:
  std::unique_ptr<Communicator> real_;
};

assay::comm::Communicator* create(const assay_comm& comm, const assay_device_access& device, void* stream,
                                  const assay::comm::Options& options) {
  return new CountedCommunicator(
      std::unique_ptr<assay::comm::Communicator>(real_factory().create(comm, device, stream, options)));
}

}  // namespace

extern "C" ASSAY_EXPORT const assay::comm::BackendFactory assay_comm_backend_v1;
extern "C" constinit const assay::comm::BackendFactory assay_comm_backend_v1 = {assay::comm::interface_id, create};
