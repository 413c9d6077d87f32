// The shared objects of this process, which distinguish two runs whatever the libraries say of their versions.
#pragma once
#include <span>

#include "record/case_record.hpp"

namespace assay::host::worker {

// By name of file: the GNU build id in hexadecimal, or "no build id". Left out are the executable, the kernel's own
// (vdso), and those that hold one of the addresses `known`: what is recorded as a file. Two of one name have both ids.
record::Named<std::string> loaded_libraries(std::span<const void* const> known);

}  // namespace assay::host::worker
