// Attention by its definition with its scores in parts: what tiled attention is held against beyond a context of 1024.
#include <assay/models/naive_attention.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/open_backend.hpp>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "trainer_host.hpp"

namespace assay::train {

namespace op = compute::op;

namespace {

using compute::DType;
using compute::Tensor;
using test::TrainerHost;

struct Sizes {
  std::int64_t batch, queries, keys, heads, depth;
};

std::vector<float> some_values(std::int64_t count, double step) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(step * static_cast<double>(i + 1)));
  return values;
}

// out, dq, dk, dv and the sinks' gradient, by tiled attention (rows = 0) or by its definition in so many rows at a
// time.
class Attention {
 public:
  // `kind` without a scale.
  Attention(const Sizes& s, const compute::AttentionShape& kind, bool has_sinks)
      : sizes_(s), shape_(kind), backend_(workload::open_backend(host_.host(), host_.launch())) {
    const std::int64_t of_queries = s.batch * s.queries * s.heads * s.depth,
                       of_keys = s.batch * s.keys * s.heads * s.depth;
    for (Tensor* t : {&q_, &dout_, &out_, &dq_}) *t = tensor({s.batch, s.queries, s.heads, s.depth});
    for (Tensor* t : {&k_, &v_, &dk_, &dv_}) *t = tensor({s.batch, s.keys, s.heads, s.depth});
    shape_.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.depth)));
    if (has_sinks) {
      for (Tensor* t : {&sinks_, &dsinks_}) *t = tensor({s.heads, 1, 1}).view({s.heads});
      workload::upload_f32(*backend_, sinks_, some_values(s.heads, 1.1));
    }
    workload::upload_f32(*backend_, q_, some_values(of_queries, 1.7));
    workload::upload_f32(*backend_, k_, some_values(of_keys, 2.3));
    workload::upload_f32(*backend_, v_, some_values(of_keys, 0.9));
    workload::upload_f32(*backend_, dout_, some_values(of_queries, 3.1));
  }

  std::vector<std::vector<float>> results(std::int64_t rows) {
    for (const Tensor* t : {&out_, &dq_, &dk_, &dv_}) backend_->run(op::Fill{.x = *t, .value = NAN});
    if (dsinks_) backend_->run(op::Fill{.x = dsinks_, .value = NAN});
    const Tensor lse = tensor({sizes_.batch, sizes_.heads, sizes_.queries});
    const Tensor scores = tensor({sizes_.batch, sizes_.heads, std::max<std::int64_t>(rows, 1), sizes_.keys});
    const Tensor dscores = tensor({sizes_.batch, sizes_.heads, std::max<std::int64_t>(rows, 1), sizes_.keys});
    const models::NaiveAttention parts(sizes_.batch, sizes_.heads, sizes_.queries, sizes_.keys, shape_,
                                       std::max<std::int64_t>(rows, 1), sinks_, dsinks_);
    const auto run = [&] {
      if (rows > 0) {
        parts.forward(*backend_, q_, k_, v_, out_, scores, lse);
        parts.backward(*backend_, q_, k_, v_, dout_, dq_, dk_, dv_, scores, dscores, lse);
        return;
      }
      backend_->run(
          op::AttentionForward{.q = q_, .k = k_, .v = v_, .out = out_, .lse = lse, .shape = shape_, .sinks = sinks_});
      backend_->run(op::AttentionBackward{.q = q_,
                                          .k = k_,
                                          .v = v_,
                                          .out = out_,
                                          .lse = lse,
                                          .dout = dout_,
                                          .dq = dq_,
                                          .dk = dk_,
                                          .dv = dv_,
                                          .shape = shape_,
                                          .sinks = sinks_,
                                          .dsinks = dsinks_});
    };
    backend_->set_mode(compute::Mode::prepare);
    run();
    backend_->set_mode(compute::Mode::execute);
    memory_.emplace_back(host_.host(), ASSAY_MEMORY_WORKSPACE, std::max<std::size_t>(256, backend_->workspace_bytes()),
                         "");
    backend_->set_workspace(memory_.back().data(), backend_->workspace_bytes());
    run();
    backend_->synchronize();
    return {workload::download_f32(*backend_, out_), workload::download_f32(*backend_, dq_),
            workload::download_f32(*backend_, dk_), workload::download_f32(*backend_, dv_),
            dsinks_ ? workload::download_f32(*backend_, dsinks_) : std::vector<float>{1.0F}};
  }

 private:
  Tensor tensor(const std::vector<std::int64_t>& shape) {
    std::size_t bytes = sizeof(float);
    for (const std::int64_t n : shape) bytes *= static_cast<std::size_t>(n);
    memory_.emplace_back(host_.host(), ASSAY_MEMORY_DATA, bytes, "");
    Tensor t(memory_.back().data(), DType::f32, {shape[0]});
    return shape.size() == 3 ? Tensor(t.data, DType::f32, {shape[0], shape[1], shape[2]})
                             : Tensor(t.data, DType::f32, {shape[0], shape[1], shape[2], shape[3]});
  }

  TrainerHost host_;
  Sizes sizes_;
  compute::AttentionShape shape_;
  std::vector<DeviceMemory> memory_;
  std::unique_ptr<compute::Backend> backend_;
  Tensor q_, k_, v_, out_, dout_, dq_, dk_, dv_, sinks_, dsinks_;
};

constexpr const char* names[] = {"out", "dq", "dk", "dv", "dsinks"};

TEST(NaiveAttention, InPartsIsThatOfOnePartAndTheTiledOne) {
  for (const Sizes& s : {Sizes{2, 21, 21, 3, 8}, Sizes{1, 64, 64, 2, 16}, Sizes{2, 9, 30, 2, 8}})
    for (const auto& [kind, has_sinks] : std::initializer_list<std::pair<compute::AttentionShape, bool>>{
             {{.causal = true}, false},
             {{.causal = false}, false},
             {{.causal = true, .window = 4}, false},
             {{.causal = true, .window = 7, .soft_cap = 0.7F}, true}}) {
      if (kind.window > 0 && s.queries > 21) continue;
      Attention attention(s, kind, has_sinks);
      const auto whole = attention.results(s.queries), tiled = attention.results(0);
      for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{5}, s.queries / 2, s.queries - 1}) {
        const auto parts = attention.results(rows);
        for (std::size_t i = 0; i < std::size(names); ++i) {
          const double allowed = i == 4 ? 1e-4 : 5e-6;  // a sum over all rows, whose terms cancel
          EXPECT_LE(verification::relative_difference(parts[i], whole[i]), allowed) << names[i] << " of " << rows;
          EXPECT_LE(verification::relative_difference(parts[i], tiled[i]), allowed) << names[i] << " of " << rows;
        }
      }
    }
}

TEST(NaiveAttention, TakesAsManyRowsAsAreAffordable) {
  EXPECT_EQ(models::NaiveAttention::rows_within(std::size_t{512} << 20, 1, 2, 1100, 1100, DType::f32), 1100);
  EXPECT_EQ(models::NaiveAttention::rows_within(1000 * 4 * 100, 1, 1, 1000, 1000, DType::f32), 100);
  EXPECT_EQ(models::NaiveAttention::rows_within(0, 1, 1, 1000, 1000, DType::f32), 63) << "a sixteenth of all";
}

TEST(OppositePath, BeyondAContextOf1024IsAttentionByItsDefinition) {
  models::DecoderConfig c;
  c.context_length = 4096, c.batch_size = 8, c.heads = 12;
  const models::DecoderConfig other = verification::opposite_path(c);
  EXPECT_FALSE(other.flash);
  EXPECT_FALSE(other.fused);
  EXPECT_GT(other.score_rows, 0);
  EXPECT_LT(other.score_rows, 4096) << "in several parts";
  c.flash = false;
  EXPECT_TRUE(verification::opposite_path(c).flash);
  EXPECT_GT(verification::opposite_path_by_definition(c).score_rows, 0);
}

// A whole model, its scores in three parts or whole, against the tiled one.
void compare_with_tiled(const models::DecoderTrainerConfig& config) {
  const TrainerHost host;
  models::DecoderTrainer trainer(host.host(), config);
  test::set_up(trainer, host);
  const auto outcome = [&](const models::DecoderConfig& of) {
    models::DecoderModel model(of, trainer.parameters(), trainer.ids());
    trainer.lend_memory(model);
    const auto enqueue = [&] {
      model.forward(trainer.backend(), trainer.inputs(), &trainer.labels(), trainer.valid_rows());
      model.backward(trainer.backend(), trainer.inputs(), trainer.labels(), trainer.valid_rows());
    };
    trainer.prepare(enqueue);
    trainer.start();
    model.initialize(trainer.backend());
    enqueue();
    trainer.backend().synchronize();
    std::vector<std::vector<float>> gradients;
    for (std::size_t id = 0; id < trainer.parameters().all().size(); ++id)
      gradients.push_back(workload::download_f32(trainer.backend(), trainer.parameters().gradient(id)));
    return gradients;
  };
  const std::vector<std::vector<float>> tiled = outcome(config.model);
  for (const bool fused : {true, false})
    for (const bool checkpointing : {true, false}) {
      models::DecoderConfig parts = config.model;
      parts.fused = fused, parts.flash = false, parts.checkpointing = checkpointing;
      parts.score_rows = fused == checkpointing ? 10 : 0;
      const std::vector<std::vector<float>> found = outcome(parts);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_LE(verification::relative_difference(found[i], tiled[i]), 5e-6) << trainer.parameters().all()[i].name;
    }
}

TEST(OppositePath, InSeveralPartsHasTheGradientsOfTheTiledOne) { compare_with_tiled(test::small_trainer()); }

TEST(OppositePath, OfWindowsSinksAndCapsHasTheGradientsOfTheTiledOne) {
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.sliding_window = 5, config.model.full_attention_every = 2;
  config.model.attention_sinks = true, config.model.attention_soft_cap = 1.5;
  compare_with_tiled(config);
}

// Tiled attention that is wrong for keys beyond 1024 and queries that no sample of rows looks at: two tiled ones agree
// on it.
class ForgetsDistantKeys final : public test::BrokenBackend {
 public:
  using BrokenBackend::BrokenBackend;
  void run_any(const compute::AnyOperation& any) override {
    real().run_any(any);
    const auto* const attention = compute::operation_cast<op::AttentionForward>(any);
    if (!attention || !executes() || attention->q.dim(1) <= 1024) return;
    const Tensor& out = attention->out;
    for (std::int64_t row = first_row; row < first_row + rows; ++row) {
      const Tensor one = out.slice(1, row, 1).view({out.dim(2) * out.dim(3)});
      real().run(op::Scale{.x = one, .factor = 0.5F, .out = one});
    }
  }
  static constexpr std::int64_t first_row = 650, rows = 80;
};

TEST(OwnGradients, OfBrokenAttentionInALongContextAreRefused) {
  const TrainerHost host(test::broken<ForgetsDistantKeys>());
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.layers = 1, config.model.batch_size = 1, config.model.context_length = 1100;
  models::DecoderTrainer trainer(host.host(), config);
  test::set_up(trainer, host);
  const std::string reason = test::wrong_result_of([&] { verification::check_own_gradients(trainer); });
  EXPECT_NE(reason.find("fused path against the unfused one"), std::string::npos) << reason;
}

TEST(OwnGradients, OfALongContextAreThoseOfTheDefinition) {
  const TrainerHost host;
  models::DecoderTrainerConfig config = test::small_trainer();
  config.model.layers = 1, config.model.batch_size = 1, config.model.context_length = 1100;
  models::DecoderTrainer trainer(host.host(), config);
  test::set_up(trainer, host);
  const Verified verified = verification::check_own_gradients(trainer);
  EXPECT_FALSE(verified.in_part) << verified.text;
}

}  // namespace
}  // namespace assay::train
