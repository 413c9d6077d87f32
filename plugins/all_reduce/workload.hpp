// The workload of collectives: one step is one collective, or a number of them in a row, and the wait for the result.
#pragma once
#include <array>
#include <assay/comm/collective_time.hpp>
#include <assay/comm/communicator.hpp>
#include <assay/comm/exact_data.hpp>
#include <assay/comm/measured_choice.hpp>
#include <assay/comm/pieces.hpp>
#include <assay/comm/registered_memory.hpp>
#include <assay/compute/backend.hpp>
#include <assay/workload/spoiled_results.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "settings.hpp"

namespace all_reduce {

class Workload {
 public:
  static constexpr auto id = "all_reduce";
  static constexpr auto summary = "a collective between ranks: time, algorithm and bus bandwidth, wrong elements";
  static constexpr auto params = all_reduce::params;
  static constexpr bool ranks_cooperate = true;
  static constexpr auto collective_phase = assay::phase("collective");
  static constexpr auto phases = assay::table(collective_phase);
  static constexpr auto message_bytes_metric =
      assay::Metric::per_case("message_bytes").unit("bytes").help("size of the larger buffer of a rank");
  static constexpr auto element_count_metric =
      assay::Metric::per_case("element_count")
          .help("elements as the call counts them: of a rank's part for reduce_scatter and all_gather");
  static constexpr auto collective_us_metric = assay::Metric::per_case("collective_us")
                                                   .unit("us")
                                                   .lower_is_better()
                                                   .help("mean time of a measured collective on this rank");
  static constexpr auto registration_metric =
      assay::Metric::word("registration", assay::comm::registrations).help("how the library knows the buffers");
  static constexpr auto mode_taken_metric = assay::Metric::word("mode_taken", assay::comm::memory_kinds)
                                                .help("kind of the buffers' memory, as named or as measured");
  static constexpr auto algorithm_bandwidth_metric =
      assay::Metric::per_case("algorithm_bandwidth_gbs")
          .unit("GB/s")
          .higher_is_better()
          .help("message_bytes by the mean time of a measured collective on this rank");
  static constexpr auto bus_bandwidth_metric = assay::Metric::per_case("bus_bandwidth_gbs")
                                                   .unit("GB/s")
                                                   .higher_is_better()
                                                   .help("algorithm bandwidth times the collective's bus factor");
  static constexpr auto wrong_elements_metric = assay::Metric::per_case("wrong_elements")
                                                    .unit("elements")
                                                    .lower_is_better()
                                                    .help("found by the verification, over all ranks");
  static constexpr auto metrics =
      assay::table(message_bytes_metric, element_count_metric, collective_us_metric, algorithm_bandwidth_metric,
                   bus_bandwidth_metric, registration_metric, mode_taken_metric, wrong_elements_metric);
  using Launch = assay::LaunchOf<Workload>;

  explicit Workload(const assay::Case& c);
  void setup(const Launch& launch);
  void run(const Launch& launch);
  void finish(const Launch& launch);
  void open_account(const Launch& launch);
  assay::Account account(const Launch& launch);
  std::string verify(const Launch& launch);
  assay::Work work() const;

 private:
  struct Buffers {
    assay::compute::Tensor send, receive;  // one buffer of a broadcast
  };
  // In place they are the larger buffer and a part of it; else the larger buffer and `other`.
  Buffers buffers(bool in_place, void* other) const;
  std::size_t other_bytes() const;
  assay::comm::Ticket enqueue(const Buffers& b);
  assay::comm::Ticket enqueue_series(const Buffers& b);  // a step's
  void run_step(const Launch& launch);
  // Communicator, memory with the data of the timed collectives, and the graph of a step; and the end of them.
  void open(const Launch& launch);
  void close();
  // Opens a kind, calls `use`, and closes.
  void try_kind(const Launch& launch, assay::comm::MemoryKind kind, const std::function<void()>& use = nullptr);
  void choose_kind(const Launch& launch);
  std::array<double, assay::comm::timed_rounds> time_kind(const Launch& launch, assay::comm::MemoryKind kind);
  assay::comm::CollectiveMemory take_memory(std::size_t bytes, const char* label);
  // A step's collectives, or one, as a graph.
  std::unique_ptr<assay::compute::Graph> capture(const Buffers& b, std::int64_t collectives);

  // account.cpp
  bool repeats_in_place() const;      // a reduction, whose result the next one reads
  std::int64_t reduced_from() const;  // of the period of the data: where that of `receive` begins
  std::vector<assay::compute::Tensor> foreign_results() const;
  void prepare_account();
  // What the timed collectives have left, whose number the communicator knows.
  assay::comm::Comparison check_timed(const assay::comm::ExactData& exact);

  // verification.cpp
  void check_count(const Launch& launch);
  // If each rank has a part of what is sent, each part has its own shift, so that no two are alike, even if a part is
  // as long as the data's period.
  void write_sent(const assay::compute::Tensor& send, const assay::comm::PeriodicData& own, std::int64_t shift) const;
  assay::comm::Comparison compare_sent(const assay::compute::Tensor& send, const assay::comm::PeriodicData& own,
                                       std::int64_t shift) const;
  assay::comm::ExactData exact_data() const;
  // The data are those of `exact` from element `shift` on.
  assay::comm::Comparison run_and_check(bool in_place, const assay::comm::ExactData& exact, std::int64_t shift);
  assay::comm::Comparison check_result(const Buffers& b, const assay::comm::ExactData& exact, std::int64_t shift) const;

  assay::Host host_;
  Settings settings_;
  std::unique_ptr<assay::compute::Backend> backend_;
  // The memory goes after the communicator, which may have registered it, and the communicator after the graph that its
  // collectives are in.
  assay::comm::CollectiveMemory larger_memory_, other_memory_;  // both of one kind
  std::unique_ptr<assay::comm::Communicator> communicator_;
  std::unique_ptr<assay::compute::Graph> graph_;  // a step; null where it is enqueued anew each time
  Buffers timed_;
  assay::comm::CollectiveTime time_;
  assay::workload::SpoiledResults spoiled_;
  std::int64_t renewed_ = 0;              // elements of `receive` that open_account has written anew
  std::uint64_t collectives_before_ = 0;  // when it did so
};

}  // namespace all_reduce
