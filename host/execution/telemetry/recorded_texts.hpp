// Which of the user's texts are recorded, and in which form: environment variables by an allow-list, and the command
// line, without tokens, keys and passwords.
#pragma once
#include <string>
#include <string_view>

namespace assay::host::telemetry {

// True for the variables that change what is measured: whole families (OMP_*, CUDA_*, NCCL_*, ...) and some names.
// False for a name with a word like TOKEN or SECRET in it, whatever its family.
bool is_recorded_variable(std::string_view name);

// The text with "***" in place of what stands before the @ of an address ("https://user:word@host/").
std::string without_passwords(std::string_view text);

// One line that a shell would take, of the arguments in /proc/PID/cmdline (each ended by a 0).
std::string command_line(std::string_view cmdline);

}  // namespace assay::host::telemetry
