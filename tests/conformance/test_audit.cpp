// The audited backend: it finds what an operation does wrong, names it, and says what it has not looked at. That it
// finds nothing where nothing is wrong is shown by this whole program with ASSAY_TEST_AUDIT=1 (conformance.audited).
#include <assay/compute/audited_backend.hpp>
#include <limits>
#include <optional>

#include "harness.hpp"

namespace assay::conformance {
namespace {

using compute::AuditedBackend;

// Breaks what comes out of a product in one place.
class BreaksProducts final : public compute::ForwardingBackend {
 public:
  BreaksProducts(std::int64_t place, float by) : ForwardingBackend(backend()), place_(place), by_(by) {}
  void run_any(const compute::AnyOperation& any) override {
    real().run_any(any);
    const auto* const product = compute::operation_cast<op::Matmul>(any);
    if (!product || !executes_) return;
    real().synchronize();
    const Tensor one = product->c.view({product->c.elements()}).slice(0, place_, 1);
    float x = 0;
    real().download(&x, one);
    x += by_;
    real().upload(one, &x);
  }
  void set_mode(Mode mode) override {
    executes_ = mode == Mode::execute;
    real().set_mode(mode);
  }

 private:
  std::int64_t place_;
  float by_;
  bool executes_ = true;
};

// Finds kernels and gives the backend workspace for `call`, for as long as the object lives.
class Prepared {
 public:
  explicit Prepared(const std::function<void()>& call) {
    backend().set_mode(Mode::prepare);
    call();
    backend().set_mode(Mode::execute);
    space_.emplace(backend().workspace_bytes());
    backend().set_workspace(space_->data(), backend().workspace_bytes());
  }
  ~Prepared() { backend().set_workspace(nullptr, 0); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

 private:
  std::optional<Buffer> space_;
};

std::string reason_of(compute::Backend& broken, const std::function<void(compute::Backend&)>& call,
                      const compute::AuditLimits& limits = {}) {
  AuditedBackend audited(broken, compute::ProductMath::exact, limits);
  const Prepared prepared([&] { call(backend()); });
  try {
    call(audited);
    return audited.text();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_WRONG_RESULT);
    return e.what();
  }
}

TEST(Audit, ElementsOfProductsAreMissed) {
  const DeviceTensor a(DType::f32, {70, 33}, random_values(DType::f32, 70 * 33, 1));
  const DeviceTensor b(DType::f32, {33, 50}, random_values(DType::f32, 33 * 50, 2)), c(DType::f32, {70, 50});
  const auto product = [&](compute::Backend& by) { by.run(op::Matmul{.a = a, .b = b, .c = c}); };
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{1777}, std::int64_t{3499}})
    for (const float by : {0.001F, std::numeric_limits<float>::quiet_NaN()}) {
      BreaksProducts broken(place, by);
      const std::string reason = reason_of(broken, product);
      EXPECT_NE(reason.find("operation 1, matmul fp32 70x50"), std::string::npos) << reason;
      EXPECT_NE(reason.find("row at element " + std::to_string(place / 50)), std::string::npos) << reason;
    }
  BreaksProducts sound(0, 0);
  EXPECT_EQ(reason_of(sound, product).rfind("1 of 1 operations held against float64", 0), 0U);
}

TEST(Audit, OfLargeProductsTheFirstAndTheLastRowAreLookedAt) {
  const std::int64_t m = 5000, k = 600, n = 400;
  const DeviceTensor a(DType::f32, {m, k}, random_values(DType::f32, m * k, 3));
  const DeviceTensor b(DType::f32, {n, k}, random_values(DType::f32, n * k, 4)), c(DType::f32, {m, n});
  for (const std::int64_t place : {std::int64_t{0}, m * n - 1}) {
    BreaksProducts broken(place, 1);
    EXPECT_NE(reason_of(broken,
                        [&](compute::Backend& by) { by.run(op::Matmul{.a = a, .b = b, .c = c, .transpose_b = true}); })
                  .find("rounding explains"),
              std::string::npos);
  }
}

// Of a soft cap the slope at the key that has nearly all probability, which bf16 rounds to 1.
TEST(Audit, AProbabilityOfOneHasTheSlopeOfItsCappedScore) {
  const DeviceTensor y(DType::bf16, {1, 1, 1, 2}, {1, 0x1p-8F}), dy(DType::bf16, {1, 1, 1, 2}, {2, -1});
  const DeviceTensor lse(DType::f32, {1, 1, 1}, {6}), dx(DType::bf16, {1, 1, 1, 2});
  const std::string text = reason_of(backend(), [&](compute::Backend& by) {
    by.run(op::SoftmaxBackward{.y = y, .dy = dy, .dx = dx, .soft_cap = 8, .lse = lse});
  });
  EXPECT_EQ(text.rfind("1 of 1 operations held against float64", 0), 0U) << text;
}

TEST(Audit, EmptyTensorsHaveNothingToLookAt) {
  const Tensor none(nullptr, DType::f32, {0});
  const std::string text = reason_of(backend(), [&](compute::Backend& by) { by.run(op::Fill{.x = none, .value = 0}); });
  EXPECT_EQ(text.rfind("1 of 1 operations held against float64", 0), 0U) << text;
}

TEST(Audit, SaysWhatWasTooLargeToLookAt) {
  const DeviceTensor a(DType::f32, {8, 8}, Values(64, 1)), c(DType::f32, {8, 8});
  BreaksProducts broken(0, 1);
  const std::string text = reason_of(broken, [&](compute::Backend& by) { by.run(op::Matmul{.a = a, .b = a, .c = c}); },
                                     {.total = 10, .each = 10});
  EXPECT_NE(text.find("0 of 1 operations"), std::string::npos) << text;
  EXPECT_NE(text.find("not looked at: matmul fp32 8x8"), std::string::npos) << text;
  const Prepared prepared([&] { backend().run(op::Matmul{.a = a, .b = a, .c = c}); });
  AuditedBackend audited(broken, compute::ProductMath::exact, {.total = 10, .each = 10});
  audited.run(op::Matmul{.a = a, .b = a, .c = c});
  EXPECT_FALSE(audited.looked_at_all());
  EXPECT_TRUE(audited.verified().in_part);
}

TEST(Audit, OfManyAlikeTheFirstIsAlwaysLookedAt) {
  const DeviceTensor a(DType::f32, {8, 8}, Values(64, 1)), c(DType::f32, {8, 8});
  const Prepared prepared([&] { backend().run(op::Matmul{.a = a, .b = a, .c = c}); });
  AuditedBackend audited(backend(), compute::ProductMath::exact, {.total = 1, .each = 1e6});
  for (int i = 0; i < 3; ++i) audited.run(op::Matmul{.a = a, .b = a, .c = c});
  EXPECT_EQ(audited.text().rfind("1 of 3 operations", 0), 0U) << audited.text();
  EXPECT_TRUE(audited.looked_at_all());
  EXPECT_FALSE(audited.verified().in_part) << "those that are alike are a share of what was looked at";
}

}  // namespace
}  // namespace assay::conformance
