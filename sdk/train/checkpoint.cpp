#include "assay/train/checkpoint.hpp"

#include <algorithm>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>
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

// What is wrong with tensors, the first ones of each kind by name.
class Problems {
 public:
  void add(std::string text) {
    if (++count_ <= most_named) text_ += (text_.empty() ? "" : "; ") + std::move(text);
  }
  // `what`: what all of them are, for those that are not named.
  std::string text(const std::string& what) const {
    if (count_ <= most_named) return text_;
    return text_ + " and " + std::to_string(count_ - most_named) + " more " + what;
  }

 private:
  static constexpr std::size_t most_named = 3;
  std::size_t count_ = 0;
  std::string text_;
};

// A workload's own `dump` has the weights after the last step beside logits and gradients.
bool is_dump(const ParameterSet& set, const SafetensorsReader& file) {
  return !set.all().empty() && file.tensors().contains("weight." + set.all().front().name);
}

// A NaN or an infinity in a file would show as a wrong result of the first step.
void require_finite(const SafetensorsReader& file, const std::string& name, DType dtype,
                    const std::vector<std::byte>& bytes) {
  constexpr std::size_t at_once = std::size_t{1} << 20;
  const std::size_t each = compute::size_of(dtype), count = bytes.size() / each;
  for (std::size_t first = 0; first < count; first += at_once) {
    const std::vector<float> values =
        workload::widened(bytes.data() + first * each, dtype, std::min(at_once, count - first));
    const auto found = std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
    if (found != values.end())
      throw Error(ASSAY_INVALID_ARGUMENT, file.file_of(name).string() + ": tensor '" + name + "' has " +
                                              workload::number(*found) + " as element " +
                                              std::to_string(first + static_cast<std::size_t>(found - values.begin())) +
                                              "; expected finite numbers, from which training can start");
  }
}

}  // namespace

void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file) {
  load_parameters(backend, set, file, {});
}

void load_parameters(compute::Backend& backend, const ParameterSet& set, const SafetensorsReader& file,
                     const FileLayout& layout) {
  Problems missing, misshapen, strange;
  const auto name_in_file = [&](const Parameter& p) { return layout.name_of ? layout.name_of(p.name) : p.name; };
  std::set<std::string> expected;
  for (const Parameter& p : set.all()) {
    const std::string name = name_in_file(p);
    expected.insert(name);
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end())
      missing.add("tensor '" + name + "' is missing, expected shape " + shape_text(p.dims));
    else if (found->second.dims != p.dims)
      misshapen.add("tensor '" + name + "' has shape " + shape_text(found->second.dims) + ", expected " +
                    shape_text(p.dims));
    else if (found->second.dtype != DType::f32 && found->second.dtype != DType::bf16 &&
             found->second.dtype != DType::f16)
      misshapen.add("tensor '" + name + "' has dtype " + compute::name_of(found->second.dtype) +
                    ", expected a floating-point one");
  }
  for (const auto& [name, tensor] : file.tensors())
    if (!expected.contains(name) && !(layout.is_left_out && layout.is_left_out(name)))
      strange.add("tensor '" + name + "' is not a parameter of this model");
  std::string problems;
  for (const std::string& text : {missing.text("are missing"), misshapen.text("have another shape or dtype"),
                                  strange.text("are no parameters of this model")})
    if (!text.empty()) problems += (problems.empty() ? "" : "; ") + text;
  if (!problems.empty()) {
    if (is_dump(set, file))
      problems =
          "a workload's `dump` wrote this file (weights named 'weight.*', beside logits and gradients); expected the "
          "parameters' names without 'weight.'; " +
          problems;
    // As "model-00001-of-00003.safetensors" is named.
    if (file.file().filename().string().find("-of-") != std::string::npos)
      problems +=
          "; this file is one of several by its name, and expected is one with the whole model, or the index of all, "
          "model.safetensors.index.json";
    throw Error(ASSAY_INVALID_ARGUMENT, file.file().string() + ": " + problems);
  }

  for (ParameterSet::Id id = 0; id < set.all().size(); ++id) {
    const Parameter& p = set.all()[id];
    const Tensor target = set.value(id);
    const std::string name = name_in_file(p);
    const StoredTensor& stored = file.at(name);
    const std::vector<std::byte> bytes = file.read(name);
    require_finite(file, name, stored.dtype, bytes);
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
