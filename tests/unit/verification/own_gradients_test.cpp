// A rank's own gradients against another path, where memory is short for the other one.
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {
namespace {

using test::TrainerHost;

// The other path of this model keeps scores, and needs more activations than the timed one.
models::DecoderTrainerConfig with_scores() {
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.context_length = 256;
  return c;
}

// What the other path takes of so many sequences.
std::size_t bytes_of(const models::DecoderTrainer& trainer, std::int64_t sequences) {
  models::DecoderConfig config = verification::opposite_path(trainer.config().model);
  config.batch_size = sequences;
  return models::DecoderModel(config, trainer.parameters(), trainer.ids()).activation_bytes();
}

Verified verified_with_room_for(std::int64_t sequences) {
  TrainerHost host;
  models::DecoderTrainer trainer(host.host(), with_scores());
  test::set_up(trainer, host);
  EXPECT_GT(bytes_of(trainer, 1), trainer.model().activation_bytes() / 4);
  host.most_of_verification = sequences > 0 ? bytes_of(trainer, sequences) : bytes_of(trainer, 1) - 1;
  return verification::check_own_gradients(trainer);
}

TEST(OwnGradients, AreComparedInAllSequencesWhereTheOtherPathFits) {
  const Verified verified = verified_with_room_for(4);
  EXPECT_FALSE(verified.in_part);
  EXPECT_NE(verified.text.find("each rank's own, fused path against the unfused one: loss differs by"),
            std::string::npos)
      << verified.text;
  EXPECT_NE(verified.text.find(", of all elements"), std::string::npos) << verified.text;
}

TEST(OwnGradients, AreComparedInFewerSequencesWhereMemoryIsShort) {
  const Verified verified = verified_with_room_for(1);
  EXPECT_FALSE(verified.in_part);
  EXPECT_NE(verified.text.find("of the first 1 of 4 sequences of each rank, fused path against the unfused one"),
            std::string::npos)
      << verified.text;
}

TEST(OwnGradients, AreVerifiedInPartWhereNotOneSequenceFits) {
  const Verified verified = verified_with_room_for(0);
  EXPECT_TRUE(verified.in_part);
  EXPECT_NE(verified.text.find("there is no memory for one sequence"), std::string::npos) << verified.text;
}

// A device of two lanes, each with workspace for what was prepared on it, as a GPU's are.
class TwoLanes final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void begin_side() override { lane_ = 1; }
  void end_side() override { lane_ = 0; }
  void join_side() override {}
  void run_any(const compute::AnyOperation& operation) override {
    if (const auto* product = compute::operation_cast<compute::op::Matmul>(operation)) {
      const std::int64_t wanted = product->c.elements();
      if (!executes())
        prepared_[lane_] = std::max(prepared_[lane_], wanted);
      else if (wanted > prepared_[lane_])
        throw Error(ASSAY_INVALID_ARGUMENT, "more than was prepared on the lane");
    }
    real().run_any(operation);
  }

 private:
  std::array<std::int64_t, 2> prepared_{};
  std::size_t lane_ = 0;
};

TEST(OwnGradients, AreAuditedOnOneLaneWhereTheStepHasTwo) {
  TrainerHost host(test::broken<TwoLanes>());
  models::DecoderTrainerConfig c = test::small_trainer();
  c.model.side_lane = true;
  // The largest result is a weight's gradient, which the step makes on the side lane.
  c.model.vocab_size = 512, c.model.batch_size = 1, c.model.context_length = 16;
  models::DecoderTrainer trainer(host.host(), c);
  test::set_up(trainer, host);
  EXPECT_FALSE(verification::check_own_gradients(trainer).in_part);
}

// A device that keeps tensors in its memory, as a GPU does: while one is there, verifications get no more of it.
class KeepsOnDevice final : public test::BrokenBackend {
 public:
  KeepsOnDevice(std::unique_ptr<compute::Backend> real, TrainerHost** host)
      : BrokenBackend(std::move(real)), inspector_(*this, host) {}
  compute::Inspector* inspector() override { return &inspector_; }

 private:
  struct Memory {
    TrainerHost** host;
    int kept = 0;
    void add(int count) {
      kept += count;
      (*host)->most_of_verification = kept > 0 ? 0 : std::numeric_limits<std::size_t>::max();
    }
  };
  class Kept final : public compute::KeptTensor {
   public:
    Kept(Memory& memory, std::unique_ptr<compute::KeptTensor> numbers) : memory_(memory), numbers_(std::move(numbers)) {
      memory_.add(1);
    }
    ~Kept() override { move_to_host(); }
    std::int64_t elements() const override { return numbers_->elements(); }
    bool move_to_host() override {
      if (!is_on_device_) return false;
      is_on_device_ = false;
      memory_.add(-1);
      return true;
    }
    const compute::KeptTensor& numbers() const { return *numbers_; }

   private:
    Memory& memory_;
    std::unique_ptr<compute::KeptTensor> numbers_;
    bool is_on_device_ = true;
  };
  class OfDevice final : public compute::Inspector {
   public:
    OfDevice(KeepsOnDevice& device, TrainerHost** host)
        : on_host_(compute::inspector_of(device.real())), memory_{host} {}
    std::vector<double> read(const compute::Tensor& t) override { return on_host_->read(t); }
    std::vector<double> read(const compute::Tensor& t, const std::vector<compute::RowSegment>& segments) override {
      return on_host_->read(t, segments);
    }
    std::vector<float> read(const compute::Tensor& t, const std::vector<compute::ElementSpan>& spans) override {
      return on_host_->read(t, spans);
    }
    std::uint64_t hash(const compute::Tensor& t) override { return on_host_->hash(t); }
    compute::MatrixSums sum_matrix(const compute::Tensor& t, const compute::LineWeights& over_columns,
                                   const compute::LineWeights& over_rows) override {
      return on_host_->sum_matrix(t, over_columns, over_rows);
    }
    std::vector<compute::WeightedSum> sum_spans(const compute::Tensor& t,
                                                const std::vector<compute::WeightedSpan>& spans,
                                                const std::vector<float>& weights) override {
      return on_host_->sum_spans(t, spans, weights);
    }
    std::vector<double> product(const std::vector<double>& x, std::int64_t rows, const compute::Tensor& w) override {
      return on_host_->product(x, rows, w);
    }
    compute::BlockSums difference_from_product(const compute::Tensor& found, float factor, const std::vector<double>& a,
                                               const std::vector<double>& b, std::int64_t rows) override {
      return on_host_->difference_from_product(found, factor, a, b, rows);
    }
    std::unique_ptr<compute::KeptTensor> keep(const compute::Tensor& t, std::int64_t most_on_host) override {
      return std::make_unique<Kept>(memory_, on_host_->keep(t, most_on_host));
    }
    compute::BlockSums difference(const compute::KeptTensor& found, const compute::Tensor& expected) override {
      return on_host_->difference(dynamic_cast<const Kept&>(found).numbers(), expected);
    }

   private:
    std::shared_ptr<compute::Inspector> on_host_;
    Memory memory_;
  };
  OfDevice inspector_;
};

TEST(OwnGradients, LeaveTheDeviceWhereTheOtherPathNeedsTheirMemory) {
  TrainerHost* present = nullptr;
  TrainerHost host(test::broken<KeepsOnDevice>(&present));
  present = &host;
  models::DecoderTrainer trainer(host.host(), with_scores());
  test::set_up(trainer, host);
  const Verified verified = verification::check_own_gradients(trainer);
  EXPECT_FALSE(verified.in_part);
  EXPECT_NE(verified.text.find("each rank's own, fused path against the unfused one: loss differs by"),
            std::string::npos)
      << verified.text;
}

// A trainer that nobody measures, as the whole model beside a rank's part, says so before it prepares anything.
class NotesTuning final : public test::BrokenBackend {
 public:
  NotesTuning(std::unique_ptr<compute::Backend> real, std::vector<compute::Tuning>* prepared)
      : BrokenBackend(std::move(real)), prepared_(prepared) {}
  void set_tuning(compute::Tuning tuning) override { tuning_ = tuning; }
  void run_any(const compute::AnyOperation& operation) override {
    if (!executes()) prepared_->push_back(tuning_);
    real().run_any(operation);
  }

 private:
  std::vector<compute::Tuning>* prepared_;
  compute::Tuning tuning_ = compute::Tuning::measured;
};

TEST(TrainerTuning, IsThatOfItsConfigurationFromTheFirstOperation) {
  for (const compute::Tuning tuning : {compute::Tuning::measured, compute::Tuning::first_choice}) {
    std::vector<compute::Tuning> prepared;
    const TrainerHost host(test::broken<NotesTuning>(&prepared));
    models::DecoderTrainerConfig config = test::small_trainer();
    config.tuning = tuning;
    models::DecoderTrainer trainer(host.host(), config);
    test::set_up(trainer, host);
    ASSERT_FALSE(prepared.empty());
    EXPECT_EQ(std::count(prepared.begin(), prepared.end(), tuning), std::ssize(prepared));
  }
}

}  // namespace
}  // namespace assay::train
