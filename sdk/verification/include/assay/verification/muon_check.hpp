// Are Muon's updates of whole matrices what its formula says? Unlike other optimizers it is not element-wise: a sample
// is a matrix, whose update is made again in float64 on the host.
//
// Rounding on the way shows in the result many times over, as the steps of Newton and Schulz lift small singular values
// by up to 3.44 each. How much is found with the matrix itself: the same iteration runs once in float64 and, beyond the
// steps that converge several times, with what is stored rounded to the format that the device stores. The device may
// differ from float64 by a few times as much, in each row.
#pragma once
#include <assay/train/optimizer.hpp>
#include <assay/train/trainer.hpp>
#include <assay/verification/matrix.hpp>
#include <string>
#include <vector>

namespace assay::verification {

// How storing rounds.
enum class Storage { exact, fp32, tf32, bf16 };
// X / |X|, and `steps` of Newton and Schulz, as train/muon.hpp says it, each stored matrix rounded. Blocks.
Matrix orthogonalised(Matrix update, std::int64_t steps, Storage storage);

class MuonCheck {
 public:
  // Of an optimizer of this kind.
  MuonCheck(const train::Trainer& trainer, const train::Optimizer& optimizer);

  // Keeps matrices as they are before an update: of each shape some, as far as the time for it goes, and others in the
  // next update. Blocks.
  void keep();
  // After the update that followed, by `rate`, of gradients that are to be multiplied by `unscale`. WRONG_RESULT where
  // a matrix is not what it should be. Blocks.
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
