// The files that a page is made of, as they lie in host/analysis/report/page and in the package of the plotting
// library. They are part of the executable: a report needs no file of an installation.
#pragma once
#include <span>
#include <string_view>

namespace assay::host::report {

std::string_view page_template();
std::string_view page_style();
std::span<const std::string_view> page_scripts();  // in the order in which each needs those before it
std::string_view plot_library();
std::string_view plot_library_licence();

}  // namespace assay::host::report
