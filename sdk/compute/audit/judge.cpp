#include "judge.hpp"

#include <cmath>
#include <cstdio>

namespace assay::compute {
namespace {

// Roundings in fp32, half a unit each, that an element's terms may meet: the longest expressions (norms' backward,
// GELU's) round about eight times, and functions in fp32 (exp, tanh, erf) are right within four units, which is eight
// more. Sums over rows or columns count the absolute values of all terms; random roundings leave less. On the devices
// measured, at most 4 of these were found.
constexpr double fp32_roundings = 16;

std::string shape_of(const Tensor& t) {
  std::string text = name_of(t.dtype);
  for (int d = 0; d < t.rank; ++d) {
    text += d ? 'x' : ' ';
    text += std::to_string(t.dim(d));
  }
  return text;
}

std::string figure(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

// Below it a type has no more digits, but a fixed step; half of that.
double least_step(DType dtype) {
  switch (dtype) {
    case DType::f16: return 0x1p-25;
    case DType::f8_e4m3: return 0x1p-10;
    case DType::f8_e5m2: return 0x1p-17;
    default: return 0x1p-125;  // kernels' exponentials are 0 a little above the least normal number
  }
}
double largest(DType dtype) { return dtype == DType::f16 ? 65504 : 3.3e38; }

}  // namespace

double AuditedBackend::Judge::rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-24;
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-11;
    case DType::f8_e4m3: return 0x1p-4;
    case DType::f8_e5m2: return 0x1p-3;
    default: return 0;
  }
}

std::string AuditedBackend::Judge::kind_of(const std::string& operation, const Tensor& of,
                                           const std::string& signature) {
  return operation + ' ' + shape_of(of) + signature;
}

bool AuditedBackend::Judge::begins(const std::string& operation, const Tensor& of, double cost,
                                   const std::string& signature) {
  if (!executes()) return false;
  ++seen_;
  operation_ = operation;
  operation_ += ' ';
  operation_ += shape_of(of);
  const std::string kind = kind_of(operation, of, signature);
  if (signatures_.contains(kind) && cost > left_) return false;
  if (cost > limits_.each) {
    left_out_.insert(operation_);
    return false;
  }
  signatures_.insert(kind);
  left_ -= cost;
  ++looked_at_;
  backend_.synchronize();
  return true;
}

void AuditedBackend::Judge::wrong(const char* tensor, const std::string& what) const {
  std::string text = "operation ";
  text += std::to_string(seen_) + ", " + operation_ + ": " + tensor + ' ' + what;
  throw Error(ASSAY_WRONG_RESULT, text);
}

void AuditedBackend::Judge::within(const char* tensor, std::int64_t place, double found, double expected,
                                   double allowed) {
  const double difference = std::abs(found - expected);
  if (!(difference <= allowed))
    wrong(tensor, "at element " + std::to_string(place) + " is " + figure(found) + ", and in float64 " +
                      figure(expected) + "; rounding explains " + figure(allowed));
  if (difference > worst_ * allowed) {
    worst_ = difference / allowed;
    worst_at_ = operation_;
  }
}

void AuditedBackend::Judge::element(const Tensor& of, const char* tensor, std::int64_t place, double found,
                                    double expected, double terms, double stored) {
  if (!std::isfinite(expected) || !std::isfinite(terms)) {  // what came in was not finite
    if (std::isfinite(found) && std::isnan(expected)) wrong(tensor, "hides a NaN at element " + std::to_string(place));
    return;
  }
  if (std::abs(expected) >= largest(of.dtype) && !std::isfinite(found)) return;  // overflow, as the type has it
  within(tensor, place, found, expected,
         rounding_of(of.dtype) * std::abs(expected) * 1.0001 + fp32_roundings * 0x1p-24 * terms + stored +
             least_step(of.dtype));
}

std::string AuditedBackend::Judge::text() const {
  char worst[32];
  std::snprintf(worst, sizeof worst, "%.2g", worst_);
  std::string text = std::to_string(looked_at_) + " of " + std::to_string(seen_) +
                     " operations held against float64, products of each kind whole, other large ones by some of their "
                     "rows, the largest error " +
                     worst + " of what rounding explains" + (worst_at_.empty() ? "" : " (" + worst_at_ + ")");
  if (left_out_.empty()) return text;
  text += ", not looked at:";
  std::size_t named = 0;
  for (const std::string& operation : left_out_) {
    if (named == 3) break;
    text += named++ ? ", " : " ";
    text += operation;
  }
  if (left_out_.size() > named) text += " and " + std::to_string(left_out_.size() - named) + " more";
  return text;
}

}  // namespace assay::compute
