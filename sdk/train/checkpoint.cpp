#include "assay/train/checkpoint.hpp"

#include <assay/workload/host_copies.hpp>
#include <set>
#include <string>

namespace assay::train {

using compute::DType;
using compute::Tensor;

namespace {

std::string shape_text(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (const std::int64_t d : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(d);
  return text + "]";
}

}  // namespace

void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file) {
  std::string problems;
  const auto problem = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  std::set<std::string> expected;
  for (const Parameter& p : set.all()) {
    expected.insert(p.name);
    const auto found = file.tensors().find(p.name);
    if (found == file.tensors().end())
      problem("tensor '" + p.name + "' is missing, expected shape " + shape_text(p.dims));
    else if (found->second.dims != p.dims)
      problem("tensor '" + p.name + "' has shape " + shape_text(found->second.dims) + ", expected " +
              shape_text(p.dims));
    else if (found->second.dtype != DType::f32 && found->second.dtype != DType::bf16 &&
             found->second.dtype != DType::f16)
      problem("tensor '" + p.name + "' has dtype " + compute::name_of(found->second.dtype) +
              ", expected a floating-point one");
  }
  for (const auto& [name, tensor] : file.tensors())
    if (!expected.contains(name)) problem("tensor '" + name + "' is not a parameter of this model");
  if (!problems.empty()) throw Error(ASSAY_INVALID_ARGUMENT, file.file().string() + ": " + problems);

  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const Tensor target = set.value(id);
    const StoredTensor& stored = file.at(set.all()[id].name);
    const std::vector<std::byte> bytes = file.read(set.all()[id].name);
    if (stored.dtype == target.dtype) {
      backend.upload(target, bytes.data());
      continue;
    }
    workload::upload_f32(backend, target,
                         workload::widened(bytes.data(), stored.dtype, static_cast<std::size_t>(target.elements())));
  }
  set.refresh_compute_copy(backend);
  backend.synchronize();
}

}  // namespace assay::train
