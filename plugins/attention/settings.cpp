#include "settings.hpp"

#include <string>

namespace attention {
namespace {

assay::workload::PrecisionPolicy precision_of(const assay::Case& c) {
  const auto name = c.get<std::string_view>("dtype");
  // Refused here, since the policy's own text offers a precision that `dtype` does not have.
  if (c.device_kind() == "cpu" && name != "fp32" && name != "bf16")
    throw assay::Error(ASSAY_UNSUPPORTED,
                       "dtype '" + std::string(name) + "' is not available on device 'cpu'; there are fp32 and bf16");
  return assay::workload::precision_policy(name, c.device_kind());
}

}  // namespace

Settings::Settings(const assay::Case& c)
    : precision(precision_of(c)),
      implementation(c.choice("impl", implementations)),
      execution(c.choice("execution", assay::workload::executions)),
      pass(c.choice("pass", passes)),
      seed(c.seed()) {
  problem.batch = c.get<std::int64_t>("batch_size");
  problem.heads = c.get<std::int64_t>("heads");
  problem.seq = c.get<std::int64_t>("seq");
  problem.head_dim = c.get<std::int64_t>("head_dim");
  problem.causal = c.get<bool>("causal");
  problem.window = c.get<std::int64_t>("window");
  if (problem.window > 0 && !problem.causal)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "window = " + std::to_string(problem.window) +
                           " is of causal attention; expected causal = true, or window left out");
  problem.documents = assay::models::documents_of(c, problem.seq);
  if (!problem.documents.empty() && !problem.causal)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "document_tokens is of causal attention; expected causal = true, or document_tokens left out");
  problem.projections = c.get<bool>("projections");
  problem.value_dim = c.get<std::int64_t>("value_dim");
  if (problem.value_dim > 0 && problem.value_dim != problem.head_dim && problem.projections)
    throw assay::Error(ASSAY_UNSUPPORTED,
                       "value_dim = " + std::to_string(problem.value_dim) +
                           " beside head_dim = " + std::to_string(problem.head_dim) +
                           ": a layer's projections are square; expected projections = false, or value_dim left out");
  problem.dtype = precision.activation;
  if (!is_countable(problem))
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "batch_size " + std::to_string(problem.batch) + ", heads " + std::to_string(problem.heads) +
                           ", seq " + std::to_string(problem.seq) + " and head_dim " +
                           std::to_string(problem.head_dim) +
                           " make 2^63 operations or more in a step, which cannot be counted; set smaller ones");
}

}  // namespace attention
