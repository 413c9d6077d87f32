#include "assay/train/checkpoint.hpp"

#include <assay/workload/host_copies.hpp>
#include <set>
#include <string>
#include <utility>

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
  load_parameters(backend, set, file, {});
}

void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file,
                     const FileLayout& layout) {
  std::string problems;
  const auto problem = [&](const std::string& text) { problems += (problems.empty() ? "" : "; ") + text; };
  const auto name_in_file = [&](const Parameter& p) { return layout.name_of ? layout.name_of(p.name) : p.name; };
  std::set<std::string> expected;
  for (const Parameter& p : set.all()) {
    const std::string name = name_in_file(p);
    expected.insert(name);
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end())
      problem("tensor '" + name + "' is missing, expected shape " + shape_text(p.dims));
    else if (found->second.dims != p.dims)
      problem("tensor '" + name + "' has shape " + shape_text(found->second.dims) + ", expected " + shape_text(p.dims));
    else if (found->second.dtype != DType::f32 && found->second.dtype != DType::bf16 &&
             found->second.dtype != DType::f16)
      problem("tensor '" + name + "' has dtype " + compute::name_of(found->second.dtype) +
              ", expected a floating-point one");
  }
  for (const auto& [name, tensor] : file.tensors())
    if (!expected.contains(name) && !(layout.is_left_out && layout.is_left_out(name)))
      problem("tensor '" + name + "' is not a parameter of this model");
  if (!problems.empty()) throw Error(ASSAY_INVALID_ARGUMENT, file.file().string() + ": " + problems);

  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const Parameter& p = set.all()[id];
    const Tensor target = set.value(id);
    const std::string name = name_in_file(p);
    const StoredTensor& stored = file.at(name);
    const std::vector<std::byte> bytes = file.read(name);
    if (stored.dtype == target.dtype && !layout.rearranged) {
      backend.upload(target, bytes.data());
      continue;
    }
    std::vector<float> values =
        workload::widened(bytes.data(), stored.dtype, static_cast<std::size_t>(target.elements()));
    if (layout.rearranged) values = layout.rearranged(p, std::move(values));
    workload::upload_f32(backend, target, values);
  }
  set.refresh_compute_copy(backend);
  backend.synchronize();
}

}  // namespace assay::train
