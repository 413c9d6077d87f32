// What kind of work a kernel does, by its name: the libraries' kernels state it in theirs, and so do ours.
#pragma once
#include <string>
#include <string_view>

namespace assay::host::profile {

inline constexpr char class_of_products[] = "matrix products", class_of_attention[] = "attention",
                      class_of_softmax[] = "softmax";

// "matrix products", "attention" (fused: its products and its softmax are one kernel), "softmax", "norms", "loss",
// "optimizer", "embedding", "communication", "routing" (to experts and back), "copies and fills", or "element-wise" for
// the rest. Takes mangled names as well as readable ones.
const char* kernel_class(std::string_view name);

// Readable: demangled, without return type, parameters and our own namespaces, at most `most_chars` long.
std::string short_kernel_name(const std::string& name, std::size_t most_chars = 96);

}  // namespace assay::host::profile
