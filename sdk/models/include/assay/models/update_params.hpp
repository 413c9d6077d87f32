// Parameters of workloads that train a decoder on one rank: where its update runs.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/decoder_trainer.hpp>

namespace assay::models {

enum class Update { after_backward, beside_backward, in_products };
inline constexpr auto updates = choices<Update>({{"after_backward", Update::after_backward},
                                                 {"beside_backward", Update::beside_backward},
                                                 {"in_products", Update::in_products}});

inline constexpr auto update_params = table(
    Param::choice("update", Update::after_backward, updates)
        .help("beside_backward: parameters are updated while backward is on its way to the next ones, on cuda on a "
              "second stream; of prepared training steps, not of fp16, nor with side_lane. in_products: experts' "
              "matrices are updated by the products that make their gradients, with adamw, not of fp16"),
    Param::integer("leave_multiprocessors", 0)
        .at_least(0)
        .at_most(64)
        .help("cuda, with update = beside_backward: multiprocessors that the products of the last "
              "micro-batch's backward do not count on, so that the update finds room"));

// What they say, to a trainer whose model and train_step are set: the number of multiprocessors that are left, for
// Trainer::leave_multiprocessors. Throws INVALID_ARGUMENT for what does not go together.
std::int32_t read_update(const Case& c, DecoderTrainerConfig& trainer);

}  // namespace assay::models
