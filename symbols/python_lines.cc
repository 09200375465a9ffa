#include "symbols/python_lines.h"

#include <cstddef>
#include <limits>
#include <optional>

namespace gmt::symbols {
namespace {

constexpr uint64_t kUnitBytes = 2;
constexpr int kNoLineDelta = -128;  // 3.10

// Kinds of entries in 3.11. 0 to 9 stay on the line; 10 to 12 advance by 0 to 2 lines.
constexpr unsigned kOneLine0 = 10, kOneLine2 = 12, kLineOnly = 13, kLong = 14, kNoLocation = 15;

uint8_t ByteAt(std::string_view table, size_t at) { return static_cast<uint8_t>(table[at]); }
int SignedAt(std::string_view table, size_t at) { return static_cast<int8_t>(ByteAt(table, at)); }

// Converts a sum of deltas to a line. In a damaged table the sum can have any value.
uint32_t LineOf(int64_t line) {
  return line < 0 || line > std::numeric_limits<uint32_t>::max() ? 0 : static_cast<uint32_t>(line);
}

uint32_t FromLnotab(uint32_t first_line, std::string_view table, uint64_t wanted) {
  if (table.size() % 2 != 0) return 0;
  uint64_t address = 0;
  int64_t line = first_line;
  for (size_t at = 0; at < table.size(); at += 2) {
    address += ByteAt(table, at);
    if (address > wanted) break;
    line += SignedAt(table, at + 1);
  }
  return LineOf(line);
}

uint32_t FromLineTable(uint32_t first_line, std::string_view table, uint64_t wanted) {
  uint64_t end = 0;
  int64_t line = first_line;
  for (size_t at = 0; at + 1 < table.size(); at += 2) {
    end += ByteAt(table, at);
    const int delta = SignedAt(table, at + 1);
    if (delta != kNoLineDelta) line += delta;
    if (wanted < end) return delta == kNoLineDelta ? 0 : LineOf(line);
  }
  return 0;
}

// Six bits per byte, lowest first; 0x40: another byte follows; the sign is in the lowest bit of
// the result.
std::optional<int64_t> SignedVarint(std::string_view table, size_t at) {
  constexpr unsigned kMaxBits = 36;  // sufficient for any int
  uint64_t value = 0;
  for (unsigned shift = 0; shift < kMaxBits && at < table.size(); shift += 6, ++at) {
    const uint8_t byte = ByteAt(table, at);
    if (byte >= 0x80) return std::nullopt;  // start of the next entry: this one is truncated
    value |= static_cast<uint64_t>(byte & 0x3f) << shift;
    if ((byte & 0x40) != 0) continue;
    const auto magnitude = static_cast<int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }
  return std::nullopt;
}

std::optional<int64_t> LineDelta(unsigned kind, std::string_view table, size_t payload) {
  if (kind >= kOneLine0 && kind <= kOneLine2) return kind - kOneLine0;
  if (kind == kLineOnly || kind == kLong) return SignedVarint(table, payload);
  return 0;
}

uint32_t FromLocations(uint32_t first_line, std::string_view table, uint64_t wanted) {
  uint64_t end = 0;
  int64_t line = first_line;
  for (size_t at = 0; at < table.size();) {
    const uint8_t head = ByteAt(table, at);
    if (head < 0x80) return 0;
    const unsigned kind = (head >> 3) & 0xf;
    const std::optional<int64_t> delta = LineDelta(kind, table, at + 1);
    if (!delta) return 0;
    line += *delta;
    end += ((head & 7) + 1) * kUnitBytes;
    if (wanted < end) return kind == kNoLocation ? 0 : LineOf(line);
    // Skip the columns: only the first byte of an entry has its highest bit set.
    do ++at;
    while (at < table.size() && ByteAt(table, at) < 0x80);
  }
  return 0;
}

}  // namespace

uint32_t PythonLine(PythonLineTable format, uint32_t first_line, std::string_view table,
                    uint32_t offset) {
  const uint64_t wanted = offset * kUnitBytes;
  switch (format) {
    case PythonLineTable::kLnotab39:
      return FromLnotab(first_line, table, wanted);
    case PythonLineTable::kLineTable310:
      return FromLineTable(first_line, table, wanted);
    case PythonLineTable::kLocations311:
      return FromLocations(first_line, table, wanted);
  }
  return 0;
}

}  // namespace gmt::symbols
