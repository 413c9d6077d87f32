// SHA-256 of whole blocks by the instructions that processors have for it, about five times as fast as libsodium's
// portable code.
#pragma once
#include <cstddef>
#include <cstdint>

namespace assay::host {

// Returns whether this processor has instructions for SHA-256.
bool has_sha256_instructions();

// Takes 64 bytes a block into the eight words of the state. Needs these instructions.
void take_sha256_blocks(std::uint32_t* state, const unsigned char* bytes, std::size_t blocks);

}  // namespace assay::host
