// A single plot of a page as a separate file, drawn by the page itself in a browser.
#pragma once
#include "report/rounded.hpp"

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::host::report {

// What each SVG begins with, by which a later one knows that it may replace the file.
inline constexpr std::string_view svg_mark = "<!-- made by assay report -->\n";

// The plots of a page by name, in its order.
std::span<const std::string_view> plot_names();

// The runs have nothing that the plot could show, or the browser did not draw it. The text says what, and the remedy.
class PictureError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class PictureFormat { svg, png };

// `data` as page_data() gives it with the name of a plot. The page is written beside `target`, where a browser that is
// confined (a snap) may read it, and is gone afterwards. Throws PictureError and StorageError.
std::string picture_of(const Json& data, PictureFormat format, const std::filesystem::path& target);

}  // namespace assay::host::report
