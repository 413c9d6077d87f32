#include "matmul_candidates.hpp"

#include <algorithm>
#include <string_view>

namespace assay::cpu {
namespace {

using dnnl::memory;

// The same numbers in a layout that oneDNN chooses.
memory::desc any_layout(const memory::desc& d) {
#if DNNL_VERSION_MAJOR < 3
  return {d.dims(), d.data_type(), memory::format_tag::any};
#else
  return {d.get_dims(), d.get_data_type(), memory::format_tag::any};
#endif
}

// oneDNN's list for one packing: `visit(primitive_desc)` until it says false.
template <class Visit>
void walk(const MatmulDescription& d, Packing packing, const dnnl::engine& engine, Visit visit) {
  const memory::desc a = packing.a ? any_layout(d.a) : d.a, b = packing.b ? any_layout(d.b) : d.b;
#if DNNL_VERSION_MAJOR < 3
  const dnnl::matmul::desc operation(a, b, d.bias, d.c);  // next_impl() reads it again: it must outlive the walk
  dnnl::matmul::primitive_desc primitive(operation, d.attributes, engine);
#else
  dnnl::matmul::primitive_desc primitive(engine, a, b, d.bias, d.c, d.attributes);
#endif
  do {
    if (!visit(primitive)) return;
  } while (primitive.next_impl());
}

const char* packing_suffix(bool a, bool b) {
  return a && b ? ", packs a and b" : a ? ", packs a" : b ? ", packs b" : "";
}

// Returns the name by which candidates_of lists the primitive.
std::string name_of(const dnnl::matmul::primitive_desc& primitive, const MatmulDescription& d) {
  return primitive.impl_info_str() +
         std::string(packing_suffix(primitive.src_desc() != d.a, primitive.weights_desc() != d.b));
}

}  // namespace

bool is_reference(std::string_view implementation) { return implementation.starts_with("ref"); }

std::vector<MatmulCandidate> candidates_of(const MatmulDescription& description, const dnnl::engine& engine,
                                           const std::vector<Packing>& packings) {
  std::vector<MatmulCandidate> candidates, references;
  const auto add = [&](MatmulCandidate candidate) {
    const auto has_its_name = [&](const MatmulCandidate& c) { return c.name == candidate.name; };
    if (std::none_of(candidates.begin(), candidates.end(), has_its_name)) candidates.push_back(std::move(candidate));
  };
  walk(description, {}, engine, [&](const dnnl::matmul::primitive_desc& primitive) {
    const std::string name = primitive.impl_info_str();
    if (is_reference(name))
      references.push_back({name, {}});
    else
      add({name, {}});
    return true;
  });
  if (candidates.empty()) return references;
  for (const Packing packing : packings) {
    try {
      walk(description, packing, engine, [&](const dnnl::matmul::primitive_desc& primitive) {
        const std::string name = primitive.impl_info_str();
        const bool a = primitive.src_desc() != description.a, b = primitive.weights_desc() != description.b;
        if (!is_reference(name) && (a || b)) add({name + packing_suffix(a, b), packing});
        return true;
      });
    } catch (const dnnl::error&) {  // there is none that packs
    }
  }
  return candidates;
}

RunnableMatmul::RunnableMatmul(const MatmulDescription& description, const MatmulCandidate& candidate,
                               const dnnl::engine& engine) {
  // By its name: places in the list change with what this process has made before, which oneDNN (2.6.3, 3.7.2) lists
  // several times.
  walk(description, candidate.packing, engine, [&](const dnnl::matmul::primitive_desc& chosen) {
    if (name_of(chosen, description) != candidate.name) return true;
    primitive_ = dnnl::matmul(chosen);
    scratch_bytes_ = aligned(chosen.scratchpad_desc().get_size());
    a_ = memory(chosen.src_desc(), engine, nullptr);
    b_ = memory(chosen.weights_desc(), engine, nullptr);
    c_ = memory(chosen.dst_desc(), engine, nullptr);
    scratch_ = memory(chosen.scratchpad_desc(), engine, nullptr);
    arguments_ = {{{DNNL_ARG_SRC, a_.get()},
                   {DNNL_ARG_WEIGHTS, b_.get()},
                   {DNNL_ARG_DST, c_.get()},
                   {DNNL_ARG_SCRATCHPAD, scratch_.get()}}};
    if (!description.bias.is_zero()) {
      bias_ = memory(chosen.bias_desc(), engine, nullptr);
      arguments_[4] = {DNNL_ARG_BIAS, bias_.get()};
      argument_count_ = 5;
    }
    pack(packed_a_, description.a, chosen.src_desc(), engine);
    pack(packed_b_, description.b, chosen.weights_desc(), engine);
    return false;
  });
  if (!primitive_)
    throw dnnl::error(dnnl_unimplemented, "oneDNN does not list this implementation of a matrix product any more");
}

std::string RunnableMatmul::implementation() const {
  const char* name = nullptr;
  dnnl::error::wrap_c_api(
      dnnl_primitive_desc_query(primitive_.get_primitive_desc(), dnnl_query_impl_info_str, 0, &name),
      "oneDNN does not name the implementation of a matrix product");
  return name;
}

void RunnableMatmul::pack(PackedOperand& operand, const memory::desc& from, const memory::desc& to,
                          const dnnl::engine& engine) {
  if (from == to) return;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc description(engine, from, engine, to, attributes);
  operand.is_used = true;
  operand.reorder = dnnl::reorder(description);
  operand.from = memory(from, engine, nullptr);
  operand.to = memory(to, engine, nullptr);
  operand.scratch = memory(description.scratchpad_desc(), engine, nullptr);
  operand.offset = scratch_bytes_;
  operand.scratch_offset = operand.offset + aligned(to.get_size());
  scratch_bytes_ = operand.scratch_offset + aligned(description.scratchpad_desc().get_size());
}

void* RunnableMatmul::packed(PackedOperand& operand, const dnnl::stream& stream, void* from, char* scratch) {
  if (!operand.is_used) return from;
  operand.from.set_data_handle(from);
  operand.to.set_data_handle(scratch + operand.offset);
  operand.scratch.set_data_handle(scratch + operand.scratch_offset);
  const std::array<dnnl_exec_arg_t, 3> arguments{{{DNNL_ARG_FROM, operand.from.get()},
                                                  {DNNL_ARG_TO, operand.to.get()},
                                                  {DNNL_ARG_SCRATCHPAD, operand.scratch.get()}}};
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(operand.reorder.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data()),
      "oneDNN did not pack an operand of a matrix product");
  return scratch + operand.offset;
}

void RunnableMatmul::run(const dnnl::stream& stream, void* a, void* b, void* c, void* bias, void* scratch) {
  char* const room = static_cast<char*>(scratch);
  a_.set_data_handle(packed(packed_a_, stream, a, room));
  b_.set_data_handle(packed(packed_b_, stream, b, room));
  c_.set_data_handle(c);
  if (bias) bias_.set_data_handle(bias);
  scratch_.set_data_handle(scratch);
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), argument_count_, arguments_.data()),
                          "oneDNN did not run a matrix product");
}

}  // namespace assay::cpu
