// One rank of a mesh that trains a decoder by a strategy: all that a workload does but its tables and what it reports
// (workload.hpp).
//
// Threads: all calls come from the backend's thread.
#pragma once
#include <assay/comm/registered_memory.hpp>
#include <assay/mesh/strategy.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/parallel/replica_average.hpp>
#include <assay/parallel/split_ranks.hpp>
#include <assay/parallel/stage_ranks.hpp>
#include <assay/train/step_marks.hpp>
#include <assay/verification/asked_decoder.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::mesh {

class DecoderRanks {
 public:
  // Throws assay::Error. `name`: the workload's. `asked_replicas`: as the case has them; 0 without such a parameter.
  DecoderRanks(const Case& c, const char* name, Strategy strategy, std::int64_t asked_replicas);

  void run(const Launch& launch);
  Account account(const Launch& launch);
  void restart(const Launch& launch);
  Verified verify(const Launch& launch);
  Work work() const;  // this rank's
  Peak peak(const Launch& launch);
  void silence(bool silent);

 protected:
  void set_up(const Launch& launch);
  double reported_loss(const std::string& name) const;  // of the last step; every rank calls it, once per name

  const Strategy& strategy() const { return strategy_; }
  const models::DecoderTrainer& trainer() const { return trainer_; }
  const parallel::ShardedBlocks* blocks() const { return blocks_ ? &*blocks_ : nullptr; }
  // After set-up.
  const parallel::GradientAverage* gradients() const { return gradients_ ? &*gradients_ : nullptr; }
  std::size_t bucket_bytes() const { return bucket_bytes_; }  // as asked for, or as measured
  const parallel::ShardedUpdate* update() const { return update_ ? &*update_ : nullptr; }
  parallel::RankSteps& steps() { return steps_; }
  void note_memory(const char* moment) const;  // where the strategy looks at memory

 private:
  models::DecoderTrainer make_trainer();
  train::ElementRange shared_range() const;
  train::GradientExchange* within_replica();
  train::GradientExchange& exchange();
  // One rank has all stages, and trains as one without any.
  bool has_stages() const { return strategy_.trainer.model.is_pipelined(); }
  // Gradients that are terms of a sum are summed over the ranks of all replicas at once. A sum within each replica and
  // then an average between them would send twice as many bytes, and ranks of a replica could add in different orders.
  bool sums_over_replicas() const { return strategy_.gradients && strategy_.axes.has_replicas(); }
  void enqueue_step(const train::StepMarks& marks);
  void enqueue_without_communication();
  train::SetupMoments setup_moments(const Launch& launch);
  void take_messages();
  void begin();                   // all ranks alike, after the trainer's start
  void reach_ranks(bool silent);  // what exchanges: the communicator, or nobody
  parallel::Gathers measure_gathers(const Launch& launch) const;
  void choose_bucket_bytes(const Launch& launch);
  void prepare_step(const Launch& launch, std::size_t bucket_bytes);
  double step_seconds(const Launch& launch, std::size_t bucket_bytes);

  // verification.cpp
  std::vector<std::int64_t> averaged_cuts() const;
  Verified check_gradients(const Launch& launch);
  std::uint64_t hash_of_read_weights() const;
  double checked_loss(const std::string& name) const;  // reported_loss(), held to the ranks' losses
  void check_axes() const;
  void keep_measured_weights();
  std::string check_measured_weights() const;
  Verified check_replicas(const Launch& launch);

  Host host_;
  std::string name_;
  Strategy strategy_;
  std::int64_t asked_replicas_;
  verification::AskedDecoder asked_;
  std::optional<parallel::ShardedBlocks> blocks_;
  std::optional<parallel::SplitRanks> parts_;  // of products, or of keys and values
  std::optional<parallel::StageRanks> stages_;
  comm::CollectiveMemory registered_parameters_;  // what is kept of them, where it is gathered from such memory
  models::DecoderTrainer trainer_;
  std::optional<parallel::ReplicaAverage> replicas_;
  std::optional<parallel::ShardedUpdate> update_;
  comm::CollectiveMemory messages_;                     // gathered blocks and whole gradients
  DeviceMemory exact_message_;                          // weights of norms
  std::optional<parallel::GradientAverage> gradients_;  // made in set-up
  std::size_t bucket_bytes_ = 0;
  std::optional<std::uint64_t> measured_weights_;  // their hash, of replicas
  parallel::RankSteps steps_;
};

}  // namespace assay::mesh
