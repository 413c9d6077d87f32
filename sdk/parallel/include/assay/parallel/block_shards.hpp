// How the parameters of a block are laid out side by side, and which rank keeps which of their elements. Numbers alone:
// no tensors, no communication.
//
// The groups of a block lie one after the other, each at a multiple of 64 elements, and the whole is padded to a
// multiple of 64 elements times the ranks: rank r keeps the r-th of as many equal parts, wherever that cuts a
// parameter.
#pragma once
#include <assay/train/block_parameters.hpp>
#include <assay/train/element_range.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::parallel {

struct BlockShards {
  struct Placed {
    train::ParameterSet::Id parameter;
    train::ElementRange elements;  // of the block
  };
  // A piece of a parameter that one rank keeps.
  struct Held {
    train::ParameterSet::Id parameter;
    std::int64_t first = 0;     // of the parameter's elements
    train::ElementRange shard;  // elements of the rank's part of the block
    std::int64_t elements() const { return shard.elements(); }
  };

  // Throws assay::Error(INTERNAL) for a group that is not whole.
  BlockShards(const train::ParameterSet& set, const train::ParameterBlock& block, std::int64_t ranks);

  std::int64_t elements() const { return shard_elements * ranks; }  // padding included
  std::vector<Held> held_by(std::int64_t rank) const;               // in the order of the block

  std::string name;
  std::vector<Placed> parameters;
  std::vector<train::ElementRange> gaps;  // elements of the block that belong to no parameter
  std::int64_t ranks, shard_elements = 0;
};

}  // namespace assay::parallel
