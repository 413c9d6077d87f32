// Muon: its operations as defined, whole steps against float64, and against the numbers of torch.optim.Muon
// (scripts/make_muon_reference.py).
#include <algorithm>
#include <cmath>

#include <assay/train/optimizer.hpp>
#include <assay/train/safetensors.hpp>
#include <assay/verification/muon_check.hpp>
#include <assay/workload/host_copies.hpp>

#include "samples.hpp"

namespace assay::conformance {
namespace {

using train::Muon;
using train::ParameterSet;

// Matrices of a batch, `step` elements after one another in memory.
Tensor with_step(const Tensor& t, std::int64_t matrices, std::int64_t elements, std::int64_t step) {
  Tensor view = t;
  view.rank = 2;
  view.shape = {matrices, elements}, view.stride = {step, 1};
  return view;
}

struct MuonTypes {
  DType gradient, state, update, parameter;
};

TEST(Muon, MomentumAndUpdateAsDefined) {
  std::vector<MuonTypes> all{{DType::f32, DType::f32, DType::f32, DType::f32},
                             {DType::bf16, DType::f32, DType::bf16, DType::f32},
                             {DType::f32, DType::bf16, DType::bf16, DType::f32},
                             {DType::bf16, DType::bf16, DType::bf16, DType::bf16}};
  for (const MuonTypes& t : all)
    for (const auto& [elements, step] : {std::pair<std::int64_t, std::int64_t>{37, 41}, {4096, 4160}, {9, 9}})
      for (const bool nesterov : {true, false}) {
        constexpr std::int64_t matrices = 3;
        constexpr double rate = 0.0625, kept = 0.75, decay = 0.5, factor = 1.5;
        const std::int64_t room = matrices * step;
        const Values g = random_values(t.gradient, room, 1), m = random_values(t.state, room, 2),
                     p = random_values(t.parameter, room, 3);
        const DeviceTensor gradient(t.gradient, {room}, g), momentum(t.state, {room}, m),
            parameter(t.parameter, {room}, p);
        const DeviceTensor update(t.update, {matrices, elements}), copy(DType::bf16, {room}),
            lr(DType::f32, {1}, {rate});
        const auto view = [elements = elements, step = step](const DeviceTensor& of) {
          return with_step(of, matrices, elements, step);
        };
        run([&] {
          backend().run(op::MuonMomentum{.gradient = view(gradient),
                                         .momentum = view(momentum),
                                         .update = update,
                                         .options = {static_cast<float>(kept), nesterov}});
        });
        Values expected_m = m, expected_u, expected_p = p;
        for (std::int64_t b = 0; b < matrices; ++b)
          for (std::int64_t i = 0; i < elements; ++i) {
            const auto at = static_cast<std::size_t>(b * step + i);
            const double now = kept * m[at] + (1 - kept) * g[at];
            expected_m[at] = rounded(t.state, now);
            expected_u.push_back(rounded(t.update, nesterov ? (1 - kept) * g[at] + kept * now : now));
          }
        check("muon momentum", t.state, momentum.read(), expected_m, tolerance_of(t.state, 1e-6));
        check("muon update of momentum", t.update, update.read(), expected_u, tolerance_of(t.update, 1e-6));
        const Values u = update.read();
        run([&] {
          backend().run(op::MuonUpdate{.parameter = view(parameter),
                                       .update = update,
                                       .lr = lr,
                                       .options = {static_cast<float>(decay), static_cast<float>(factor)},
                                       .compute_copy = view(copy)});
        });
        for (std::int64_t b = 0; b < matrices; ++b)
          for (std::int64_t i = 0; i < elements; ++i) {
            double& x = expected_p[static_cast<std::size_t>(b * step + i)];
            x = rounded(t.parameter,
                        (1 - rate * decay) * x - rate * factor * u[static_cast<std::size_t>(b * elements + i)]);
          }
        const Values found = parameter.read();
        check("muon update", t.parameter, found, expected_p, tolerance_of(t.parameter, 1e-6));
        EXPECT_EQ(copy.read(view(copy)), rounded(DType::bf16, parameter.read(view(parameter))));
        // What lies between the matrices stays.
        for (std::int64_t i = elements; i < step; ++i)
          EXPECT_EQ(found[static_cast<std::size_t>(i)], p[static_cast<std::size_t>(i)]);
      }
}

TEST(Muon, NormalizesEachMatrix) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const std::int64_t elements : {1, 7, 96, 50000}) {
      Values x = random_values(type, 3 * elements, 5, 0.0, 4.0);
      std::fill(x.begin() + elements, x.begin() + 2 * elements, 0.0);  // one of zeros stays
      const DeviceTensor there(type, {3, elements}, x);
      run([&] { backend().run(op::NormalizeRows{.x = there}); });
      for (std::int64_t b = 0; b < 3; ++b) {
        const auto first = x.begin() + b * elements, last = first + elements;
        double squares = 0;
        std::for_each(first, last, [&](double v) { squares += v * v; });
        std::for_each(first, last, [&](double& v) { v /= std::max(std::sqrt(squares), 1e-7); });
      }
      check("normalize rows", type, there.read(), x, tolerance_of(type, 1e-6));
    }
}

TEST(Muon, RefusesWhatItDoesNotServe) {
  const DeviceTensor x(DType::f32, {2, 8}), longer(DType::f32, {2, 9}), lr(DType::f32, {1}, {0.1}),
      whole(DType::i64, {2, 8});
  const auto momentum = [&](const Tensor& gradient, const Tensor& state, const Tensor& update) {
    return status_of(
        [&] { backend().run(op::MuonMomentum{.gradient = gradient, .momentum = state, .update = update}); });
  };
  const DeviceTensor state(DType::f32, {2, 8}), update(DType::f32, {2, 8});
  EXPECT_EQ(momentum(longer, state, update), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(momentum(x, longer, update), ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(momentum(x, whole, update), ASSAY_UNSUPPORTED);
  EXPECT_EQ(momentum(x, state, longer->slice(1, 0, 8)), ASSAY_UNSUPPORTED) << "an update with gaps";
  EXPECT_EQ(status_of([&] { backend().run(op::MuonUpdate{.parameter = longer, .update = update, .lr = lr}); }),
            ASSAY_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { backend().run(op::NormalizeRows{.x = longer->slice(1, 0, 8)}); }), ASSAY_UNSUPPORTED);
}

// ---- whole steps ---------------------------------------------------------------------------------------------------

// Parameters with their optimizer, in memory of the device.
class Trained {
 public:
  // `ranges`: what the optimizer is restricted to; none: the whole.
  Trained(const char* precision, const train::OptimizerConfig& config, const std::vector<train::Parameter>& parameters,
          const std::vector<train::ElementRange>& ranges = {})
      : set_(workload::precision_policy(precision, is_cuda() ? "cuda" : "cpu")),
        scaler_(set_.policy()),
        optimizer_(restricted(train::Optimizer(config, filled(set_, parameters)), ranges)),
        values_(set_.value_bytes()),
        copy_(set_.copy_bytes()),
        gradients_(set_.gradient_bytes()),
        state_(optimizer_.state_bytes()),
        scratch_(optimizer_.scratch_bytes()) {
    set_.bind(values_.data(), copy_.data(), gradients_.data());
    optimizer_.bind(state_.data());
    optimizer_.bind_scratch(scratch_.data());
    optimizer_.reset(backend());
  }

  const ParameterSet& set() const { return set_; }
  const train::Optimizer& optimizer() const { return optimizer_; }
  void put(const Tensor& t, const Values& values) const { write(t, values); }
  void step() {
    run([&] { optimizer_.step(backend(), scaler_); });
  }
  Values read(const Tensor& t) const { return compute::inspector_of(backend())->read(t); }

 private:
  static ParameterSet& filled(ParameterSet& set, const std::vector<train::Parameter>& parameters) {
    for (const train::Parameter& p : parameters) set.add({p});
    return set;
  }
  static train::Optimizer restricted(train::Optimizer optimizer, const std::vector<train::ElementRange>& ranges) {
    if (!ranges.empty()) optimizer.restrict_to(ranges);
    return optimizer;
  }
  static void write(const Tensor& t, const Values& values) {
    const DeviceTensor from(t.dtype, {t.elements()}, values);
    run([&] { backend().run(op::Copy{.to = t.flat(), .from = from}); });
    backend().synchronize();
  }

  ParameterSet set_;
  train::LossScaler scaler_;
  train::Optimizer optimizer_;
  Buffer values_, copy_, gradients_, state_, scratch_;
};

std::vector<train::Parameter> some_parameters() {
  return {{.name = "words", .dims = {40, 24}, .row_parts = 0},
          {.name = "wide", .dims = {24, 72}},
          {.name = "norm", .dims = {24}},
          {.name = "tall", .dims = {72, 24}},
          {.name = "experts", .dims = {3, 48, 24}, .row_parts = 2},
          {.name = "square", .dims = {24, 24}}};
}

TEST(Muon, KnowsMatricesAndTheRest) {
  const Trained trained("fp32", {.name = "muon"}, some_parameters());
  const Muon& muon = *trained.optimizer().muon();
  std::int64_t matrices = 0, elements = 0;
  for (const Muon::Batch& batch : muon.batches())
    matrices += batch.count, elements += batch.count * batch.rows * batch.columns;
  // The six of the experts, gate and up of three, have the shape of the square one.
  ASSERT_EQ(muon.batches().size(), 3u);
  EXPECT_EQ(matrices, 9);
  ASSERT_EQ(muon.rest().size(), 2u);
  EXPECT_EQ(muon.rest()[0], (train::ElementRange{0, 960}));
  EXPECT_EQ(muon.rest()[1].elements(), 24);
  EXPECT_EQ(elements + 984, trained.set().parameter_count());
  // One momentum of all, second moments of the rest alone.
  EXPECT_EQ(trained.optimizer().moment_bytes(),
            4u * static_cast<std::size_t>(trained.set().arena_elements() + 960 + 64));
}

// A range that ends within a matrix.
TEST(Muon, RefusesPartsOfMatrices) {
  ParameterSet set(workload::precision_policy("fp32", "cpu"));
  set.add({{.name = "matrix", .dims = {16, 16}}});
  train::Optimizer optimizer({.name = "muon"}, set);
  std::string text;
  EXPECT_EQ(status_of([&] { optimizer.restrict_to({{0, 64}}); }, &text), ASSAY_UNSUPPORTED);
  EXPECT_NE(text.find("a part of 'matrix'; expected optimizer = \"adamw\""), std::string::npos) << text;
  EXPECT_NO_THROW(optimizer.restrict_to({{0, 256}}));
}

// The definition, written out once more.
TEST(Muon, StepsAsFloat64Does) {
  const std::int64_t steps = 5;
  for (const char* precision : {"fp32", "bf16"})
    for (const auto adjust : {train::MuonAdjust::original, train::MuonAdjust::match_rms_adamw}) {
      train::OptimizerConfig config{.name = "muon", .lr = 0.0};
      config.muon = {.lr = 0.125, .weight_decay = 0.5F, .momentum = 0.5F, .adjust = adjust};
      Trained trained(precision, config, some_parameters());
      const ParameterSet& set = trained.set();
      std::vector<Values> w, m;
      for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
        w.push_back(random_values(DType::f32, set.all()[id].elements(), 10 + id, 0.0, 0.1));
        m.emplace_back(w.back().size(), 0.0);
        trained.put(set.value(id), w.back());
      }
      for (std::uint64_t step = 0; step < 2; ++step) {
        std::vector<Values> g;
        for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
          g.push_back(random_values(set.policy().gradient, set.all()[id].elements(), 100 * (step + 1) + id, 0.0, 0.01));
          trained.put(set.gradient(id), g.back());
        }
        trained.step();
        for (ParameterSet::Id id = 0; id < set.all().size(); ++id)
          for (const train::ArenaMatrix& matrix : train::matrices_of(set.all()[id])) {
            const auto rows = static_cast<std::size_t>(matrix.rows), columns = static_cast<std::size_t>(matrix.columns);
            const auto begin = static_cast<std::size_t>(matrix.begin - set.all()[id].offset);
            verification::Matrix update(rows, columns);
            for (std::size_t i = 0; i < rows * columns; ++i) {
              double& momentum = m[id][begin + i];
              momentum += 0.5 * (g[id][begin + i] - momentum);
              update.values[i] = 0.5 * g[id][begin + i] + 0.5 * momentum;
            }
            const auto right = orthogonalised(update, steps, verification::Storage::exact);
            const double long_side = static_cast<double>(std::max(rows, columns));
            const double factor = adjust == train::MuonAdjust::match_rms_adamw ? 0.2 * std::sqrt(long_side)
                                  : rows > columns ? std::sqrt(static_cast<double>(rows) / static_cast<double>(columns))
                                                   : 1.0;
            for (std::size_t i = 0; i < rows * columns; ++i)
              w[id][begin + i] = (1 - 0.125 * 0.5) * w[id][begin + i] - 0.125 * factor * right.values[i];
          }
      }
      for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
        const bool is_matrix = !train::matrices_of(set.all()[id]).empty();
        check("muon step", set.policy().activation, trained.read(set.value(id)), w[id],
              !is_matrix ? 0 : tolerance_of(set.policy().activation, 2e-5, 0.05));
        if (set.policy().compute_copy()) {
          EXPECT_EQ(trained.read(set.compute(id)), rounded(DType::bf16, trained.read(set.value(id))));
        }
      }
    }
}

Values stored(const train::SafetensorsReader& file, const std::string& name) {
  const std::vector<std::byte> bytes = file.read(name);
  const std::vector<float> values = workload::widened(bytes.data(), DType::f32, bytes.size() / sizeof(float));
  return {values.begin(), values.end()};
}

// torch.optim.Muon itself, with float64 in the place of its bf16 and as it is.
TEST(Muon, TrainsAsTorchDoes) {
  const train::SafetensorsReader file(ASSAY_TEST_DATA "/muon/steps.safetensors");
  const std::vector<train::Parameter> parameters{
      {.name = "wide", .dims = {12, 20}}, {.name = "tall", .dims = {20, 12}}, {.name = "square", .dims = {16, 16}}};
  for (std::size_t adjust = 0; adjust < train::muon_adjusts.size(); ++adjust)
    for (const auto& [precision, exact] : {std::pair{"fp32", true}, {"bf16", false}}) {
      train::OptimizerConfig config{.name = "muon"};
      config.muon = {
          .lr = 0.125, .weight_decay = 0.25F, .momentum = 0.75F, .adjust = static_cast<train::MuonAdjust>(adjust)};
      Trained trained(precision, config, parameters);
      const ParameterSet& set = trained.set();
      for (ParameterSet::Id id = 0; id < parameters.size(); ++id)
        trained.put(set.value(id), stored(file, "weight." + parameters[id].name));
      for (int step = 0; step < 3; ++step) {
        for (ParameterSet::Id id = 0; id < parameters.size(); ++id)
          trained.put(set.gradient(id), stored(file, "gradient." + std::to_string(step) + "." + parameters[id].name));
        trained.step();
      }
      for (ParameterSet::Id id = 0; id < parameters.size(); ++id) {
        const std::string kind = exact ? "float64." : "bf16.";
        check("muon beside torch", set.policy().activation, trained.read(set.value(id)),
              stored(file, kind + train::muon_adjusts[adjust] + "." + parameters[id].name),
              tolerance_of(set.policy().activation, 2e-5, 0.1));
      }
    }
}

// The momenta of ranges that lie apart are packed: of matrices that are evenly spaced among the weights they are evenly
// spaced by less (0, 2 and 4 of the first share), or unevenly (those of the second one).
TEST(Muon, UpdatesRangesThatLieApartAsTheWhole) {
  std::vector<train::Parameter> parameters;
  for (int i = 0; i < 9; ++i) parameters.push_back({.name = std::to_string(i), .dims = {16, 16}});
  const auto ranges_of = [](const std::vector<std::int64_t>& matrices) {
    std::vector<train::ElementRange> ranges;
    for (const std::int64_t i : matrices) ranges.push_back({256 * i, 256 * (i + 1)});
    return ranges;
  };
  const auto after_steps = [&](const std::vector<train::ElementRange>& ranges) {
    Trained trained("fp32", {.name = "muon"}, parameters, ranges);
    const std::int64_t elements = trained.set().arena_elements();
    trained.put(trained.set().all_values(), random_values(DType::f32, elements, 1, 0.0, 0.1));
    for (std::uint64_t step = 0; step < 3; ++step) {
      trained.put(trained.set().all_gradients(), random_values(DType::f32, elements, 2 + step, 0.0, 0.01));
      trained.step();
    }
    return trained.read(trained.set().all_values());
  };
  const Values whole = after_steps({});
  for (const std::vector<std::int64_t>& share : {std::vector<std::int64_t>{0, 2, 4, 7}, {0, 2, 3, 4, 6}}) {
    const Values found = after_steps(ranges_of(share));
    for (const std::int64_t i : share) {
      const auto piece = [&](const Values& all) { return Values(all.begin() + 256 * i, all.begin() + 256 * (i + 1)); };
      check("muon share", DType::f32, piece(found), piece(whole), tolerance_of(DType::f32, 2e-5, 0.05));
    }
  }
}

// A batch that holds fewer matrices at a time gives the same.
TEST(Muon, CutsBatchesAndFindsTheirRuns) {
  ParameterSet set(workload::precision_policy("fp32", "cpu"));
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = std::to_string(layer);
    set.add({{.name = "q" + name, .dims = {8, 16}}, {.name = "k" + name, .dims = {8, 16}}});
    set.add({{.name = "norm" + name, .dims = {16}}});
  }
  const std::vector<train::ElementRange> all{{0, set.arena_elements()}};
  const Muon whole({}, set, all);
  ASSERT_EQ(whole.batches().size(), 1u);
  ASSERT_EQ(whole.batches()[0].runs.size(), 2u);  // one over the layers for each of the two
  EXPECT_EQ(whole.batches()[0].runs[0].count, 6);
  EXPECT_EQ(whole.batches()[0].runs[0].step, set.all()[3].offset);
  const Muon cut({}, set, all, 5 * 128);
  ASSERT_EQ(cut.batches().size(), 3u);
  std::vector<std::int64_t> begins;
  for (const Muon::Batch& batch : cut.batches()) {
    EXPECT_EQ(batch.count, 4);
    for (const Muon::Run& run : batch.runs)
      for (std::int64_t i = 0; i < run.count; ++i) begins.push_back(run.begin + i * run.step);
  }
  std::sort(begins.begin(), begins.end());
  std::vector<std::int64_t> expected;
  for (const train::Parameter& p : set.all())
    if (p.dims.size() == 2) expected.push_back(p.offset);
  EXPECT_EQ(begins, expected);
  EXPECT_EQ(whole.rest().size(), 6u);
}

}  // namespace

// ---- samples
op::MuonMomentum sample(Given& g, Kind<op::MuonMomentum>) {
  return {.gradient = g.numbers({2, 48}),
          .momentum = g.numbers({2, 48}),
          .update = g.room({2, 48}),
          .options = {.momentum = 0.5F}};
}
op::NormalizeRows sample(Given& g, Kind<op::NormalizeRows>) { return {.x = g.numbers({2, 48})}; }
op::MuonUpdate sample(Given& g, Kind<op::MuonUpdate>) {
  return {.parameter = g.numbers({2, 48}),
          .update = g.numbers({2, 48}),
          .lr = g.one(0.5),
          .options = {},
          .compute_copy = g.room({2, 48}, DType::bf16)};
}

}  // namespace assay::conformance
