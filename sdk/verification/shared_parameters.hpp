// What a rank has of the whole model's parameters: pieces of them, wherever they lie in its own arenas. By parts of
// each parameter (models/decoder_parameter_ids.hpp), or by blocks (parallel/block_shards.hpp).
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/verification/whole_model_check.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::verification {

class SharedParameters {
 public:
  using Id = train::ParameterSet::Id;

  // Takes memory of the largest whole parameter if parts are columns: throws OUT_OF_MEMORY. All must outlive it.
  SharedParameters(const Host& host, models::DecoderTrainer& mine, const models::DecoderTrainer& whole,
                   const SharedModel& shared);

  // A piece of a parameter that this rank has; tensors are flat.
  struct Piece {
    Id whole;                        // the parameter of the whole model
    compute::Tensor value, compute;  // here; `compute`: empty without a copy
    // The same piece of a tensor of the whole parameter, until the next call.
    std::function<compute::Tensor(const compute::Tensor&)> of;
  };
  std::vector<Piece> pieces() const;

  // This rank's part of a tensor of the whole model, by the id here: flat, until the next call. Of parts.
  compute::Tensor part_of(Id id, const compute::Tensor& whole) const;
  Id whole_id(Id id) const { return parts_[id].whole; }

  // Elements that `rank` has: where they begin in the whole model's arena and in its own.
  struct Range {
    std::int64_t whole = 0, own = 0, elements = 0;
  };
  std::vector<Range> held_by(std::int64_t rank) const;

  // Fills the whole model's weights with those of the ranks, as products read them. Throws WRONG_RESULT where a rank
  // has gathered something else than its owner has. Returns a text on the result; "" where all weights are common.
  std::string take_weights(const std::string& name, const std::string& when, const parallel::RankSteps& steps) const;
  // Of what every rank has, a tensor for each parameter.
  std::uint64_t hash_of_common(const std::function<compute::Tensor(Id)>& tensor) const;

 private:
  std::string take_stages(const std::string& name, const std::string& when, const parallel::RankSteps& steps) const;
  std::string take_blocks(const std::string& name, const std::string& when, const parallel::RankSteps& steps) const;
  compute::Backend& backend() const { return mine_.backend(); }
  const train::ParameterSet& own() const { return mine_.parameters(); }
  // A tensor for `count` elements that nothing else uses.
  compute::Tensor room(compute::DType type, std::int64_t count) const {
    return compute::Tensor(room_.data(), type, {count});
  }

  Host host_;
  models::DecoderTrainer& mine_;
  const train::ParameterSet& all_;  // of the whole model
  parallel::ShardedBlocks* blocks_;
  bool all_common_;
  std::vector<models::DecoderPart> parts_;  // by this rank's parameters
  DeviceMemory room_;                       // of the largest whole parameter
};

}  // namespace assay::verification
