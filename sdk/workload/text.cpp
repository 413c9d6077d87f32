#include "assay/workload/text.hpp"

#include <cstdio>

namespace assay::workload {

std::string number(double x, const char* printf_format) {
  char text[32];
  std::snprintf(text, sizeof text, printf_format, x);
  return text;
}

}  // namespace assay::workload
