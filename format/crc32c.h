// format/crc32c.h
//
// CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected): the checksum at the end of header, chunks
// and index of a recording. Uses the processor's CRC instruction if available.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_CRC32C_H_
#define GMT_FORMAT_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace gmt::format {

// Crc32c("123456789") is 0xE3069283.
uint32_t Crc32c(std::string_view bytes);

// Computes the same value with tables on any processor. The test uses it as a reference.
uint32_t Crc32cByTable(std::string_view bytes);

}  // namespace gmt::format

#endif  // GMT_FORMAT_CRC32C_H_
