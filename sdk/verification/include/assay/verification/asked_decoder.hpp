// What an experiment asks of a decoder and its training, read from the case once more, apart from the code that makes
// the model (models/decoder_params.hpp). If a base of the rotation or a rate gets lost on the way there, the model is
// still right in itself.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <string>
#include <utility>
#include <vector>

namespace assay::verification {

class AskedDecoder {
 public:
  // Of a case with the rows model_params (or shared_model_params), checkpointing_params, accumulation_params and
  // optimizer_params. `batches`: as many as ranks train on by the case; 0: others ask that.
  explicit AskedDecoder(const Case& c, std::int64_t batches = 0);
  // Throws WRONG_RESULT that names the first setting in which `found` is another one.
  void check(const models::DecoderTrainerConfig& found) const;

 private:
  using Settings = std::vector<std::pair<std::string, double>>;
  static Settings settings_of(const models::DecoderTrainerConfig& config);

  Settings asked_;
  std::string optimizer_;
  std::uint64_t seed_;
  std::int64_t batches_;
  std::vector<std::int64_t> documents_;  // of a sequence
};

}  // namespace assay::verification
