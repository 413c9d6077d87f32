// Do Muon's updates of whole matrices follow its formula? Unlike other optimizers it is not element-wise: a sample is a
// matrix, whose update is computed again in float64 on the host.
//
// Rounding on the way is amplified in the result, because Newton-Schulz steps lift small singular values by up to 3.44
// each. The matrix itself shows by how much: the same iteration runs once in float64 and once with stored values
// rounded to the device's format. The device may differ from float64 by a few times as much, in each row.
#pragma once
#include <assay/train/optimizer.hpp>
#include <assay/train/trainer.hpp>
#include <assay/verification/matrix.hpp>
#include <string>
#include <vector>

namespace assay::verification {

// How storing rounds.
enum class Storage { exact, fp32, tf32, bf16 };
// X / |X|, and `steps` Newton-Schulz steps, as in train/muon.hpp, each stored matrix rounded. Blocks.
Matrix orthogonalised(Matrix update, std::int64_t steps, Storage storage);

class MuonCheck {
 public:
  // Of an optimizer of this kind.
  MuonCheck(const train::Trainer& trainer, const train::Optimizer& optimizer);

  // Keeps matrices before an update: some of each shape, as far as the time for it allows, and others in the next
  // update. Blocks.
  void keep();
  // After the update that followed, by `rate`, with gradients to be multiplied by `unscale`. WRONG_RESULT if a matrix
  // differs from the expected one. Blocks.
  void compare(double rate, double unscale, std::int64_t update_number);
  // After one that is skipped: WRONG_RESULT where a matrix or its momentum has changed. Blocks.
  void require_same();

  std::string text() const;  // "12 matrices of 3 shapes whole, ..."

 private:
  struct Chosen {
    const train::Muon::Batch* batch;
    train::ElementRange range;
    Matrix value, momentum;  // before the update
  };
  Matrix read(const compute::Tensor& arena, const train::ElementRange& range, const train::Muon::Batch& batch) const;
  std::string name_of(const train::ElementRange& range) const;
  void compare(const Chosen& chosen, double rate, double unscale, std::int64_t update_number);

  const train::Trainer& trainer_;
  const train::Optimizer& optimizer_;
  compute::Backend& backend_;
  const train::ParameterSet& set_;
  std::vector<Chosen> chosen_;
  std::size_t next_batch_ = 0;  // where the next choice begins
  std::int64_t next_matrix_ = 0;
  std::vector<bool> seen_, moved_;  // by batch
  std::int64_t compared_ = 0;
  double worst_ = 0;  // relative to what is allowed
};

}  // namespace assay::verification
