// How large a decoder's scores are, and what their rounding leaves of attention.
#include <algorithm>
#include <assay/workload/text.hpp>
#include <cmath>

#include "assay/models/decoder_config.hpp"
#include "decoder_scores.hpp"

namespace assay::models {

using workload::number;

namespace {

// Half a unit in the last place of what products read, relative; of fp32 ten of them, which their sums add. Queries and
// keys of 8-bit products are sums whose roundings average, and attention's inputs are bf16: a quarter of e4m3's.
double rounding_of(const workload::PrecisionPolicy& p) {
  if (p.eight_bit_products) return 0x1p-6;
  if (p.product_math == compute::ProductMath::tf32 || p.activation == compute::DType::f16) return 0x1p-11;
  return p.activation == compute::DType::bf16 ? 0x1p-8 : 10 * 0x1p-24;
}

}  // namespace

double DecoderConfig::usual_score() const {
  const double magnitude = rope_scaling.applied_magnitude();
  return magnitude * magnitude * static_cast<double>(score_factor()) *
         std::sqrt(static_cast<double>(head_width()) / query_scalar());
}

double DecoderConfig::rounding_growth_of_scores() const {
  const double score = std::max(1.0, usual_score());
  return attention_soft_cap > 0 ? std::max(score, 2 * score / attention_soft_cap) : score;
}

// Where a head is short its error is as 1 / length^2 and its gradient as 1 / length. Of n normal columns of unit size
// the mean square of the one is n / (n - 4) times that of the other; at 4 columns it grows with the logarithm of the
// number of heads, 9 of some 1e5.
double DecoderConfig::rounding_growth_of_attention() const {
  constexpr std::int64_t few_columns = 16;  // of more it is 1.15 and less
  if (!qk_norm || head_width() >= few_columns) return rounding_growth_of_scores();
  const auto n = static_cast<double>(head_width());
  return rounding_growth_of_scores() * (n > 4 ? std::sqrt(n / (n - 4)) : 3);
}

double DecoderConfig::rounding_growth_of_logits() const {
  return logit_soft_cap > 0 ? std::max(1.0, 2 * std::max(1.0, usual_logit()) / logit_soft_cap) : 1;
}

// Of random weights, sums of d_model independent products.
double DecoderConfig::usual_logit() const {
  const auto d = static_cast<double>(d_model), words = static_cast<double>(vocab_size);
  return std::sqrt(2 * d / (d + words));
}

// A 16th: beyond it gradients are off by half of themselves and more.
void validate_scores(const DecoderConfig& c) {
  const double most = 1.0 / 16 / rounding_of(c.precision), found = c.rounding_growth_of_scores();
  if (!(found <= most)) {
    const double score = c.usual_score();
    const bool by_cap = found > std::max(1.0, score);
    const std::string of =
        by_cap ? "attention_soft_cap = " + number(c.attention_soft_cap) + " below scores of size " + number(score)
               : "scores of size " + number(score) + ", of query_pre_attn_scalar = " + number(c.query_scalar()) +
                     ", heads of " + std::to_string(c.head_width()) + " columns and a rotation that multiplies by " +
                     number(c.rope_scaling.applied_magnitude());
    throw Error(ASSAY_INVALID_ARGUMENT,
                of + ": rounding in this precision then decides " +
                    (by_cap ? "the slope of the cap" : "what a softmax makes of them") + "; expected " +
                    (by_cap ? "a cap of at least " + number(2 * std::max(1.0, score) / most)
                            : "scores up to " + number(most) +
                                  ", by a larger query_pre_attn_scalar or a smaller rope_attention_factor") +
                    ", or a precision of more digits");
  }
  if (!(c.rounding_growth_of_logits() <= most))
    throw Error(ASSAY_INVALID_ARGUMENT,
                "logit_soft_cap = " + number(c.logit_soft_cap) +
                    ": rounding in this precision then decides the slope of the cap; expected at least " +
                    number(2 * std::max(1.0, c.usual_logit()) / most) + ", or 0, which leaves logits as they are");
  if (c.qk_norm && c.head_width() < 4)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "qk_norm of heads of " + std::to_string(c.head_width()) +
                    " columns: such a norm leaves only an angle, whose gradient is unbounded near 0, so rounding of "
                    "the shortest heads decides it; expected heads of at least 4 columns, or qk_norm = false");
}

}  // namespace assay::models
