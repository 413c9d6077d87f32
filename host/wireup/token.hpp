// The secret that keeps strangers, and ranks of another launch, out of the key-value service.
#pragma once
#include <string>
#include <string_view>

namespace assay::host::wireup {

// 128 random bits of the system as 32 hexadecimal digits. Throws WireupError when the system gives none.
std::string random_token();

// Takes as long for a token that differs at its first character as for one that differs at its last.
bool same_token(std::string_view a, std::string_view b) noexcept;

}  // namespace assay::host::wireup
