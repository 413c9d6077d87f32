// my_plugin: the sum of one vector over all ranks (an all-reduce), through Gloo on the CPU and NCCL on GPUs.
#include <assay/plugin.hpp>

#include <assay/comm/communicator.hpp>
#include <assay/workload/open_backend.hpp>
#include <memory>
#include <vector>

using assay::compute::DType;
using assay::compute::Tensor;

struct MyPlugin {
  static constexpr auto id = "my_plugin", summary = "the sum of one vector over all ranks";
  static constexpr auto params = assay::table(assay::Param::integer("n", 1 << 20)
                                                  .at_least(1)
                                                  .at_most(1 << 28)
                                                  .unit("elements")
                                                  .help("length of the vector, fp32"));
  static constexpr bool ranks_cooperate = true;  // several ranks work together: the host may start as many
  static constexpr auto all_reduce_phase = assay::phase("all_reduce");
  static constexpr auto phases = assay::table(all_reduce_phase);

  explicit MyPlugin(const assay::Case& c)
      : host(c.host()), rank(c.rank()), ranks(c.rank_count()), n(c.get<std::int64_t>("n")) {}

  // Every rank makes the same calls of the communicator, in the same order.
  void setup(const assay::Launch& launch) {
    backend = assay::workload::open_backend(host, launch);
    communicator = assay::comm::open_communicator(host, launch, "auto");
    host.info(communicator->description());
    const auto bytes = static_cast<std::size_t>(n) * sizeof(float);
    send_memory = assay::DeviceMemory(host, ASSAY_MEMORY_COMMUNICATION, bytes, "sent");
    receive_memory = assay::DeviceMemory(host, ASSAY_MEMORY_COMMUNICATION, bytes, "received");
    communicator->register_memory(send_memory.data(), bytes);
    communicator->register_memory(receive_memory.data(), bytes);
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = value(rank, i);
    backend->upload(sent(), values.data());
    step();                       // libraries connect in their first collective
    communicator->take_totals();  // from here on they are of steps alone
  }

  // Enqueues the collective and the wait for its result; on a GPU the host thread goes on.
  void run(const assay::LaunchOf<MyPlugin>& launch) {
    const auto phase = launch.phase(all_reduce_phase);
    step();
  }

  // Every step writes the same sums. So the first of them is destroyed before the first measured step, which shows in
  // verify; and the host compares the collectives that the communicator has ended with the steps that it has timed.
  void open_account(const assay::Launch&) {
    constexpr float nothing = -1;
    backend->upload(received().slice(0, 0, 1), &nothing);
  }
  assay::Account account(const assay::Launch&) { return {.steps = communicator->take_totals().collectives}; }

  // Sums of small integers are exact in fp32, in whatever order they are made.
  std::string verify(const assay::Launch&) {
    check("after the last step");
    const std::vector<float> nothing(static_cast<std::size_t>(n), -1.0F);
    backend->upload(received(), nothing.data());
    step();
    check("into memory that held something else");
    return "every element is the sum over " + std::to_string(ranks) + " ranks, to the bit";
  }

  // What crosses the border of a rank at least: its vector, once.
  assay::Work work() const { return {.bytes = static_cast<std::uint64_t>(n) * sizeof(float)}; }

 private:
  static float value(std::int32_t of_rank, std::int64_t i) { return static_cast<float>(1 + of_rank + i % 1000); }

  void step() const {
    const assay::comm::Ticket ticket = communicator->all_reduce(sent(), received(), assay::comm::Reduction::sum);
    communicator->wait(ticket);
  }

  // Reads behind what a step has waited for, and no later.
  void check(const char* when) const {
    std::vector<float> found(static_cast<std::size_t>(n));
    backend->download(found.data(), received());
    for (std::int64_t i = 0; i < n; ++i) {
      float expected = 0;
      for (std::int32_t r = 0; r < ranks; ++r) expected += value(r, i);
      if (found[static_cast<std::size_t>(i)] != expected)
        throw assay::Error(ASSAY_WRONG_RESULT, "rank " + std::to_string(rank) + ", " + when + ": element " +
                                                   std::to_string(i) + " is " +
                                                   std::to_string(found[static_cast<std::size_t>(i)]) + ", expected " +
                                                   std::to_string(expected));
    }
  }

  Tensor sent() const { return Tensor(send_memory.data(), DType::f32, {n}); }
  Tensor received() const { return Tensor(receive_memory.data(), DType::f32, {n}); }

  assay::Host host;
  std::int32_t rank, ranks;
  std::int64_t n;
  std::unique_ptr<assay::compute::Backend> backend;
  assay::DeviceMemory send_memory, receive_memory;          // it goes after the communicator,
  std::unique_ptr<assay::comm::Communicator> communicator;  // which may have registered it
};

ASSAY_PLUGIN("org.example.my_plugin", "0.1.0", MyPlugin)
