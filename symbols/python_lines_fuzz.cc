// Fuzzer (preset fuzz): for any line table, every offset must have a result, no byte outside may
// be read, and a truncated table must never give a line that the complete one does not give.
//
// Run: build/fuzz/fuzz/python_lines_fuzz -max_len=4096 -timeout=10 CORPUS

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "symbols/python_lines.h"

namespace {

using gmt::symbols::PythonLine;
using gmt::symbols::PythonLineTable;

// Looks up in a buffer of exactly the table's size, so that AddressSanitizer detects any overrun.
uint32_t LineInCopy(PythonLineTable format, uint32_t first, std::string_view table,
                    uint32_t offset) {
  const auto copy = std::make_unique<char[]>(table.size());
  memcpy(copy.get(), table.data(), table.size());
  return PythonLine(format, first, {copy.get(), table.size()}, offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 6) return 0;
  const auto format = static_cast<PythonLineTable>(data[0] % 3);
  const size_t cut = data[1];
  uint32_t first;
  memcpy(&first, data + 2, sizeof(first));
  const std::string_view table(reinterpret_cast<const char*>(data) + 6, size - 6);
  for (uint32_t offset : {0u, 1u, 7u, 100u, 5000u, UINT32_MAX}) {
    const uint32_t line = LineInCopy(format, first, table, offset);
    if (format == PythonLineTable::kLnotab39 || cut > table.size()) continue;
    const uint32_t of_cut = LineInCopy(format, first, table.substr(0, cut), offset);
    if (of_cut != 0 && of_cut != line) abort();
  }
  return 0;
}
