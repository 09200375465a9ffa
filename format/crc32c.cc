#include "format/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace gmt::format {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82F63B78;

// kTables[n][b]: the change of the checksum caused by byte b followed by n zero bytes. With eight
// tables, eight bytes cost eight look-ups.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t n = 1; n < tables.size(); ++n) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[n - 1][byte];
      tables[n][byte] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint64_t Load64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  uint64_t crc = ~uint32_t{0};
  for (; end - at >= 8; at += 8) crc = __builtin_ia32_crc32di(crc, Load64(at));
  uint32_t rest = static_cast<uint32_t>(crc);
  for (; at != end; ++at) rest = __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(*at));
  return ~rest;
}
#endif

}  // namespace

uint32_t Crc32cByTable(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  uint32_t crc = ~uint32_t{0};
  for (; end - at >= 8; at += 8) {
    const uint64_t word =
        Load64(at) ^ crc;  // little endian, like all machines with a supported GPU
    crc = 0;
    for (size_t n = 0; n < 8; ++n) crc ^= kTables[7 - n][(word >> (8 * n)) & 0xFF];
  }
  for (; at != end; ++at)
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*at)) & 0xFF];
  return ~crc;
}

uint32_t Crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ByInstruction(bytes);
#endif
  return Crc32cByTable(bytes);
}

}  // namespace gmt::format
