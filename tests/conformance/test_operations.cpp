// What holds for every operation of the list: it is served, says what is missing, keeps its tensors apart, and gives
// the same bits where it may work in place.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include <assay/train/buffer_plan.hpp>

#include "samples.hpp"

namespace assay::conformance {
namespace {

using compute::InPlace;
using compute::pairs_in_place;

// Loss scaling belongs to fp16, which the CPU has not.
template <class Op>
bool is_served() {
  return is_cuda() || !std::is_same_v<Op, op::UpdateLossScale>;
}

// Calls test(Kind<Op>()) for every operation.
template <class Test>
void for_each_operation(Test test) {
  compute::Operations::for_each([&]<class Op>(Kind<Op> kind) {
    SCOPED_TRACE(Op::name);
    test(kind);
  });
}

template <class Op>
Tensor& tensor_of(Op& operation, std::string_view wanted) {
  Tensor* found = nullptr;
  compute::for_each_tensor(operation, [&](const char* name, Tensor& t) {
    if (wanted == name) found = &t;
  });
  return *found;
}

template <class Op>
std::vector<std::string> names_of(const Op& operation, bool written_alone) {
  std::vector<std::string> names;
  compute::for_each_tensor(operation, [&](const char* name, const auto& t) {
    if (t && (!written_alone || compute::is_written<std::remove_cvref_t<decltype(t)>>)) names.push_back(name);
  });
  return names;
}

// All that the operation has written, by name.
template <class Op>
std::map<std::string, Values> results_of(const Given& given, Op operation) {
  run([&] { backend().run(operation); });
  std::map<std::string, Values> results;
  for (const std::string& name : names_of(operation, true)) results[name] = given.read(tensor_of(operation, name));
  return results;
}

TEST(EveryOperation, WritesTheSameTwice) {
  for_each_operation([]<class Op>(Kind<Op> kind) {
    if (!is_served<Op>()) return;
    if (std::is_same_v<Op, op::SpoilPlaces>) return;  // writes NaN, which equals nothing (test_step_account.cpp)
    Given first, second;
    const auto results = results_of(first, sample(first, kind));
    EXPECT_FALSE(results.empty());
    for (const auto& [name, values] : results)
      for (const double x : values) EXPECT_TRUE(std::isfinite(x)) << name;
    EXPECT_EQ(results, results_of(second, sample(second, kind)));
  });
}

TEST(EveryOperation, NamesTheTensorThatIsMissing) {
  for_each_operation([]<class Op>(Kind<Op> kind) {
    Given given;
    compute::for_each_tensor(sample(given, kind), [&](const char* name, const auto& field) {
      if (compute::may_be_empty<std::remove_cvref_t<decltype(field)>>) return;
      Op without = sample(given, kind);
      tensor_of(without, name) = {};
      std::string text;
      EXPECT_EQ(status_of([&] { backend().run(without); }, &text), ASSAY_INVALID_ARGUMENT) << name;
      EXPECT_NE(text.find(std::string(name) + " is empty"), std::string::npos) << text;
    });
  });
}

TEST(EveryOperation, KeepsItsTensorsApart) {
  for_each_operation([]<class Op>(Kind<Op> kind) {
    Given given;
    const Op apart = sample(given, kind);
    for (const std::string& written : names_of(apart, true))
      for (const std::string& other : names_of(apart, false)) {
        const auto named = [&](const InPlace& pair) {
          return (pair.out == written && pair.in == other) || (pair.out == other && pair.in == written);
        };
        const auto pairs = pairs_in_place<Op>();
        if (written == other || std::any_of(pairs.begin(), pairs.end(), named)) continue;
        Op together = apart;
        tensor_of(together, written).data = tensor_of(together, other).data;
        std::string text;
        EXPECT_EQ(status_of([&] { backend().run(together); }, &text), ASSAY_INVALID_ARGUMENT)
            << written << ", " << other;
        EXPECT_NE(text.find("share memory"), std::string::npos) << text;
      }
  });
}

TEST(EveryOperation, GivesTheSameInPlace) {
  for_each_operation([]<class Op>(Kind<Op> kind) {
    for (const InPlace& pair : pairs_in_place<Op>()) {
      Given first, second;
      const auto apart = results_of(first, sample(first, kind));
      Op together = sample(second, kind);
      tensor_of(together, pair.out) = tensor_of(together, pair.in);
      EXPECT_EQ(apart, results_of(second, together)) << pair.out << " in the place of " << pair.in;
      // Half a row further on it is another tensor, in part the same.
      Op shifted = sample(second, kind);
      Tensor& out = tensor_of(shifted, pair.out);
      out = tensor_of(shifted, pair.in);
      out.data = static_cast<char*>(out.data) + 16;
      EXPECT_EQ(status_of([&] { backend().run(shifted); }), ASSAY_INVALID_ARGUMENT) << pair.out;
    }
  });
}

// A model that runs before it is bound names the tensor in place of ending the process.
TEST(EveryOperation, RefusesATensorOfAPlanThatIsNotBound) {
  train::BufferPlan plan;
  const auto id = plan.add("x", DType::f32, {4, 4}, 0, 0);
  std::string text;
  EXPECT_EQ(status_of([&] { backend().run(op::Fill{.x = plan[id], .value = 0}); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("x has no memory yet"), std::string::npos) << text;
}

TEST(EveryOperation, NamesTheStepThatDropoutMisses) {
  Given given;
  op::ApplyDropout without = sample(given, Kind<op::ApplyDropout>());
  without.dropout.step = {};
  std::string text;
  EXPECT_EQ(status_of([&] { backend().run(without); }, &text), ASSAY_INVALID_ARGUMENT);
  EXPECT_NE(text.find("step is empty"), std::string::npos) << text;
}

// The parts of a packed buffer lie in each other's extent, and share no byte.
TEST(EveryOperation, TakesThePartsOfAPackedBufferForApart) {
  const DeviceTensor packed(DType::f32, {2, 6, 9, 8}, random_values(DType::f32, 2 * 6 * 9 * 8, 1));
  const auto part = [&](int which) { return packed->slice(2, 3 * which, 3); };
  const DeviceTensor lse(DType::f32, {2, 3, 6});
  const op::AttentionForward within{
      .q = part(0), .k = part(0), .v = part(1), .out = part(2), .lse = lse, .shape = {.scale = 1, .causal = true}};
  EXPECT_EQ(status_of([&] { run([&] { backend().run(within); }); }), ASSAY_OK);
  op::AttentionForward over = within;
  over.out = packed->slice(2, 2, 3);
  EXPECT_EQ(status_of([&] { backend().run(over); }), ASSAY_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace assay::conformance
