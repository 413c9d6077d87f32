// The kinds of devices that a user may ask for: those of common/device_kinds.hpp, and those of other backends that are
// installed. The host knows of the latter what their tables say: no vendor's tools, no stand-in, no communicator.
#pragma once
#include <string>
#include <vector>

namespace assay::host::plugin {

// By the names of their files, without those of common/device_kinds.hpp.
std::vector<std::string> other_device_kinds();

// What an option or a setting takes that names a device of this machine: "auto", and each kind.
std::vector<std::string> device_words();
bool is_device_word(const std::string& word);
std::string device_words_in_sentence();  // "auto, cpu or cuda"
std::string device_kinds_in_sentence();  // "cpu or cuda"

// In the order in which `device = "auto"` takes them: this machine's processors come last.
std::vector<std::string> kinds_for_auto(const std::vector<std::string>& others);

}  // namespace assay::host::plugin
