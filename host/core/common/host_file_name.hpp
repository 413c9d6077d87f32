// The name of a host or node as the name of a file, or as a part of one.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace assay::host {

// Letters, digits, '-', '_' and '.' stand for themselves, but for a '.' at the beginning; any other byte is '+' and its
// two hexadecimal digits: "u@n1" is "u+40n1". Hosts that differ have names that differ. At most 150 bytes: the end of a
// longer name is a hash of it.
std::string file_name_of_host(std::string_view host);
// The host; nothing where the name is none that the function above gives, or its end is a hash.
std::optional<std::string> host_of_file_name(std::string_view name);

}  // namespace assay::host
