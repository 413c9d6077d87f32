#include "workload.hpp"

#include "copy.hpp"
#include "matrix_product.hpp"
#include "sum_of_ranks.hpp"

namespace node_check {
namespace {

std::unique_ptr<Check> make_check(const assay::Case& c) {
  const Settings settings(c);
  if (settings.check == CheckOf::matrix_product) return std::make_unique<MatrixProduct>(c.host(), settings);
  if (settings.check == CheckOf::copy) return std::make_unique<Copy>(c.host(), settings);
  return std::make_unique<SumOfRanks>(c.host(), settings);
}

}  // namespace

Workload::Workload(const assay::Case& c) : check_(make_check(c)) {}

}  // namespace node_check
