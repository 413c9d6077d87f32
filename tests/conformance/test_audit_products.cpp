// The audit's check of whole products: what is wrong in one row, column, tile or element of a large product is found
// with its place, and a right product of any shape and kind is not refused.
#include <assay/compute/audited_backend.hpp>
#include <cmath>
#include <optional>
#include <random>

#include "harness.hpp"

namespace assay::conformance {
namespace {

using compute::AuditedBackend;

// Changes what comes out of a product.
class ChangesProducts final : public compute::ForwardingBackend {
 public:
  using Change = std::function<void(Values& c, std::int64_t rows, std::int64_t columns)>;
  ChangesProducts(const DeviceTensor& c, Change change)
      : ForwardingBackend(backend()), c_(c), change_(std::move(change)) {}
  void run_any(const compute::AnyOperation& any) override {
    real().run_any(any);
    if (!compute::operation_cast<op::Matmul>(any)) return;
    real().synchronize();
    Values values = c_.read();
    change_(values, c_->dim(-2), c_->dim(-1));
    c_.write(rounded(c_->dtype, values));
  }

 private:
  const DeviceTensor& c_;
  Change change_;
};

struct Product {
  std::int64_t batch, m, n, k;
  DType input, output;
  bool transpose_a = false, transpose_b = false, accumulate = false, bias = false, residual = false;
  float alpha = 1;
};

// What the audit says of a product that `change` has changed: its text, or the error.
struct Said {
  bool wrong;
  std::string text;
};
Said audit_of(const Product& p, std::uint64_t salt, const ChangesProducts::Change& change,
              const compute::AuditLimits& limits = {}) {
  const auto tensor = [&](DType type, std::int64_t rows, std::int64_t columns, std::uint64_t which) {
    return DeviceTensor(type, {p.batch, rows, columns},
                        random_values(type, p.batch * rows * columns, salt * 8 + which));
  };
  const DeviceTensor a = p.transpose_a ? tensor(p.input, p.k, p.m, 1) : tensor(p.input, p.m, p.k, 1);
  const DeviceTensor b = p.transpose_b ? tensor(p.input, p.n, p.k, 2) : tensor(p.input, p.k, p.n, 2);
  const DeviceTensor c = tensor(p.output, p.m, p.n, 3), residual = tensor(p.output, p.m, p.n, 4);
  const DeviceTensor bias(p.output, {p.n}, random_values(p.output, p.n, salt * 8 + 5));
  op::Matmul product{.a = a,
                     .b = b,
                     .c = c,
                     .transpose_a = p.transpose_a,
                     .transpose_b = p.transpose_b,
                     .alpha = p.alpha,
                     .accumulate = p.accumulate};
  if (p.bias) product.bias = bias.tensor();
  if (p.residual) product.residual = residual.tensor();
  ChangesProducts changed(c, change);
  AuditedBackend audited(changed, compute::ProductMath::exact, limits);
  backend().set_mode(Mode::prepare);
  backend().run(product);
  backend().set_mode(Mode::execute);
  const Buffer space(backend().workspace_bytes());
  backend().set_workspace(space.data(), backend().workspace_bytes());
  Said said{};
  try {
    audited.run(product);
    said.text = audited.text();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ASSAY_WRONG_RESULT) << e.what();
    said = {true, e.what()};
  }
  backend().set_workspace(nullptr, 0);
  return said;
}

const ChangesProducts::Change nothing = [](Values&, std::int64_t, std::int64_t) {};

// Of 16 rows that were sampled of this one none is among those that change below, but the last.
Product large(DType type) { return {1, 1500, 1037, 2011, type, type}; }

void expect_place(const Said& said, const std::string& rows, const std::string& columns) {
  EXPECT_TRUE(said.wrong) << said.text;
  EXPECT_NE(said.text.find("is off in " + rows), std::string::npos) << said.text;
  EXPECT_NE(said.text.find(" and " + columns), std::string::npos) << said.text;
}

TEST(AuditOfProducts, OneRowIsFoundAmongMany) {
  for (const DType type : float_types())
    for (const std::int64_t row : {std::int64_t{501}, std::int64_t{1499}}) {
      const Said said = audit_of(large(type), 1, [&](Values& c, std::int64_t, std::int64_t n) {
        for (std::int64_t j = 0; j < n; ++j) c[static_cast<std::size_t>(row * n + j)] *= 1.5;
      });
      expect_place(said, "1 of 1500 rows (most in row " + std::to_string(row) + ")", "");
    }
}

TEST(AuditOfProducts, OneColumnThatIsDroppedIsFound) {
  for (const DType type : float_types()) {
    const Said said = audit_of(large(type), 2, [](Values& c, std::int64_t m, std::int64_t n) {
      for (std::int64_t i = 0; i < m; ++i) c[static_cast<std::size_t>(i * n + 777)] = 0;
    });
    expect_place(said, "", "1 of 1037 columns (most in column 777)");
  }
}

TEST(AuditOfProducts, OneTileIsFound) {
  for (const DType type : float_types()) {
    const Said said = audit_of(large(type), 3, [](Values& c, std::int64_t, std::int64_t n) {
      for (std::int64_t i = 640; i < 656; ++i)
        for (std::int64_t j = 320; j < 336; ++j) c[static_cast<std::size_t>(i * n + j)] = 0;
    });
    EXPECT_TRUE(said.wrong) << said.text;
    const auto number_after = [&](const std::string& what) {
      const std::size_t at = said.text.find(what);
      return at == std::string::npos ? -1 : std::stol(said.text.substr(at + what.size()));
    };
    EXPECT_TRUE(number_after("most in row ") >= 640 && number_after("most in row ") < 656) << said.text;
    EXPECT_TRUE(number_after("most in column ") >= 320 && number_after("most in column ") < 336) << said.text;
  }
}

TEST(AuditOfProducts, OneElementIsFound) {
  for (const DType type : float_types())
    for (const auto& [row, column] : {std::pair(733, 12), std::pair(1499, 1036)}) {
      // An element is about 45; a row of bf16 is known to six deviations of its roundings, which are 20.
      const Said said = audit_of(large(type), 4, [row = row, column = column](Values& c, std::int64_t, std::int64_t n) {
        c[static_cast<std::size_t>(row * n + column)] += 45;
      });
      expect_place(said, "1 of 1500 rows (most in row " + std::to_string(row) + ")",
                   "1 of 1037 columns (most in column " + std::to_string(column) + ")");
    }
}

TEST(AuditOfProducts, AllMatricesOfABatchAreLookedAt) {
  const Product p{.batch = 19, .m = 65, .n = 33, .k = 40, .input = DType::f32, .output = DType::f32};
  const Said said = audit_of(p, 5, [](Values& c, std::int64_t m, std::int64_t n) {
    c[static_cast<std::size_t>(11 * m * n + 17 * n + 5)] += 0.001;
  });
  expect_place(said, "1 of 65 rows (most in row 17)", "1 of 33 columns (most in column 5)");
  EXPECT_NE(said.text.find("matrix 11"), std::string::npos) << said.text;
}

TEST(AuditOfProducts, WhatIsNotFiniteInAnyRowIsFound) {
  const Said said = audit_of(large(DType::f32), 6, [](Values& c, std::int64_t, std::int64_t n) {
    c[static_cast<std::size_t>(500 * n + 3)] = NAN;
  });
  expect_place(said, "1 of 1500 rows (most in row 500)", "1 of 1037 columns (most in column 3)");
}

TEST(AuditOfProducts, OneThatIsTooLargeToLookAtWholeIsSaidToBe) {
  const Said said = audit_of(large(DType::f32), 7, nothing, {.total = 1e8, .each = 8e5});
  EXPECT_FALSE(said.wrong);
  EXPECT_NE(said.text.find("not looked at: matmul"), std::string::npos) << said.text;
  const Said in_rows = audit_of(large(DType::f32), 7, nothing, {.total = 1e8, .each = 4e5});
  EXPECT_NE(in_rows.text.find("not looked at"), std::string::npos) << in_rows.text;
}

// Shapes, kinds and numbers by lot.
TEST(AuditOfProducts, RightOnesAreNeverRefused) {
  std::mt19937_64 lot(20);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(lot() % static_cast<std::uint64_t>(n)); };
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const DType input = float_types()[static_cast<std::size_t>(below(std::ssize(float_types())))];
    Product p{.batch = below(4) == 0 ? 1 + below(7) : 1,
              .m = 1 + below(150),
              .n = 1 + below(150),
              .k = 1 + below(300),
              .input = input,
              .output = below(3) == 0 ? DType::f32 : input,
              .transpose_a = below(2) == 0,
              .transpose_b = below(2) == 0};
    switch (below(4)) {
      case 0: p.accumulate = true; break;
      case 1: p.bias = true; break;
      case 2: p.residual = true; break;
      default: p.alpha = 0.37F; break;
    }
    const Said said = audit_of(p, 100 + seed, nothing);
    EXPECT_FALSE(said.wrong) << "seed " << seed << ": " << said.text;
    EXPECT_EQ(said.text.rfind("1 of 1 operations", 0), 0U) << said.text;
  }
}

// Rows that are all alike round alike: their sums are one draw and not many.
TEST(AuditOfProducts, RowsThatAreAlikeAreNotRefused) {
  for (const DType type : float_types())
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const std::int64_t m = 40, k = 65, n = 33;
      const Values row = random_values(type, k, 900 + seed);
      Values rows;
      for (std::int64_t i = 0; i < m; ++i) rows.insert(rows.end(), row.begin(), row.end());
      const DeviceTensor a(type, {m, k}, rows), b(type, {k, n}, random_values(type, k * n, 1900 + seed)),
          c(type, {m, n});
      const op::Matmul product{.a = a, .b = b, .c = c};
      bool is_prepared = false;  // it audits what is carried out
      run([&] {
        if (std::exchange(is_prepared, true)) return AuditedBackend(backend()).run(product);
        backend().run(product);
      });
    }
}

}  // namespace
}  // namespace assay::conformance
