// CRC-32C (Castagnoli, reflected, as in iSCSI and ext4): the checksum of shards and manifest. Chosen because others can
// recompute it, because it finds every flipped bit and every burst of up to 32 bits for certain, and because x86 has an
// instruction for it that outruns disks (8 bytes in 3 cycles); elsewhere tables do it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace assay::data {

// The checksum of what `crc` is the checksum of, followed by these bytes. Of nothing it is 0.
std::uint32_t crc32c(std::uint32_t crc, const void* bytes, std::size_t size);
// The way without the instruction, which the above takes where there is none.
std::uint32_t crc32c_by_tables(std::uint32_t crc, const void* bytes, std::size_t size);

std::string crc_text(std::uint32_t crc);  // eight hexadecimal digits

}  // namespace assay::data
