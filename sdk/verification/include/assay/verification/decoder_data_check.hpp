// Does a rank train on the experiment's data? Its tokens and labels must be those of its place in the batch of all
// ranks, which is derived again here: drawn from the seed, or read from the file of inputs. So parts of ranks are
// disjoint, labels are in the vocabulary, and every row is as expected.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <string>

namespace assay::verification {

// What is wrong with them on this rank; "" where all is right. Blocks.
std::string wrong_data_of(const models::DecoderTrainer& trainer);
// The same for a workload whose ranks do not share a batch. Returns what was checked, or throws WRONG_RESULT.
std::string check_data(const models::DecoderTrainer& trainer);
std::string checked_data_text(const models::DecoderTrainer& trainer);

}  // namespace assay::verification
