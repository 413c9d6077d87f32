// The conformance suite of communicators as a workload: the host starts the ranks, the case's device holds the memory.
#include <assay/comm/communicator.hpp>
#include <assay/plugin.hpp>
#include <assay/workload/open_backend.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "suite/suite.hpp"

namespace op = assay::compute::op;

namespace {

using namespace assay;

constexpr std::array backends{"auto", "gloo", "nccl"};

class CommConformance {
 public:
  static constexpr auto id = "comm_conformance", summary = "every collective against exact references";
  static constexpr bool ranks_cooperate = true;
  static constexpr auto params = table(
      Param::choice("backend", "auto", backends).help("communication backend; auto: the device's"),
      Param::integer("largest_mib", 64).at_least(1).at_most(4096).unit("MiB").help("size of the large all-reduce"));

  explicit CommConformance(const Case& c)
      : host_(c.host()),
        backend_name_(c.get<std::string>("backend")),
        largest_bytes_(c.get<std::size_t>("largest_mib") << 20),
        buffer_bytes_(test::CommunicatorSuite::bytes_needed(c.rank_count(), largest_bytes_)) {}

  void setup(const Launch& launch) {
    compute_ = workload::open_backend(host_, launch);
    communicator_ = comm::open_communicator(host_, launch, backend_name_);
    send_ = DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, buffer_bytes_, "send");
    receive_ = DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, buffer_bytes_, "receive");
    scratch_ = DeviceMemory(host_, ASSAY_MEMORY_WORKSPACE, scratch_elements * sizeof(float), "scratch");
    communicator_->register_memory(send_.data(), send_.bytes());
    communicator_->register_memory(receive_.data(), receive_.bytes());
    compute_->run(op::Fill{.x = vector(send_.data(), 1024), .value = 1.0});
    host_.info(communicator_->description());
  }
  void run(const Launch&) {
    const compute::Tensor x = vector(send_.data(), 1024);
    communicator_->wait(communicator_->all_reduce(x, x, comm::Reduction::average));
  }
  std::string verify(const Launch&) {
    communicator_->synchronize();
    const auto bytes_at = [](const void* address, std::size_t n) {
      return compute::Tensor(const_cast<void*>(address), compute::DType::u8, {static_cast<std::int64_t>(n)});
    };
    test::SuiteMemory memory;
    memory.send = send_.data<char>(), memory.receive = receive_.data<char>(), memory.bytes = buffer_bytes_;
    memory.upload = [&](void* device, const void* from, std::size_t n) {
      if (n > 0) compute_->upload(bytes_at(device, n), from);
    };
    memory.download = [&](void* to, const void* device, std::size_t n) {
      if (n > 0) compute_->download(to, bytes_at(device, n));
    };
    memory.compute = [&] { compute_->run(op::Fill{.x = vector(scratch_.data(), scratch_elements), .value = 1.0}); };
    memory.capture = [&](const std::function<void()>& body) { return communicator_->watch(compute_->capture(body)); };
    test::CommunicatorSuite suite(*communicator_, comm::ranks_of(host_), std::move(memory), largest_bytes_);
    suite.run();
    if (!suite.passed()) throw Error(ASSAY_WRONG_RESULT, suite.text());
    return communicator_->description() + ": " + suite.text();
  }

 private:
  static constexpr std::int64_t scratch_elements = 1 << 20;
  static compute::Tensor vector(void* address, std::int64_t n) {
    return compute::Tensor(address, compute::DType::f32, {n});
  }

  Host host_;
  std::string backend_name_;
  std::size_t largest_bytes_, buffer_bytes_;
  std::unique_ptr<compute::Backend> compute_;
  DeviceMemory send_, receive_, scratch_;
  std::unique_ptr<comm::Communicator> communicator_;  // last: it goes before the memory that it may use
};

}  // namespace

ASSAY_PLUGIN("assay.tests.comm_conformance", "1.0.0", CommConformance)
