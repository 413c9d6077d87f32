// Figures in the texts of verifications and errors.
#pragma once
#include <string>

namespace assay::workload {

// The number by a format of printf that takes one double: number(0.00123) is "0.00123".
std::string number(double x, const char* printf_format = "%.3g");

}  // namespace assay::workload
