// A fuzzer (preset `fuzz`): for any input, the reader terminates and every array that it returns
// lies within the input. The input is read as a slab, then as the header of one.
//
// Run: build/fuzz/fuzz/slab_reader_fuzz -max_len=4096 -timeout=10 CORPUS
// viewer/slab/testdata holds a slab for the initial corpus.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "viewer/slab/slab.h"

namespace gmt::slab {
namespace {

void ReadAll(const std::string& bytes) {
  const auto slab = Slab::Parse(bytes);
  if (!slab.ok()) return;
  for (const Slab::Array& array : slab->arrays()) {
    if (array.offset + array.count * SizeOf(array.type) > bytes.size()) std::abort();
    (void)slab->Values<uint8_t>(array.name);
    (void)slab->Values<double>(array.name);
  }
}

std::string WithHeader(const std::string& header) {
  std::string bytes(kMagic);
  bytes += {static_cast<char>(kVersion), 0, 0, 0};
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  return bytes + header + std::string(64, 'x');
}

}  // namespace
}  // namespace gmt::slab

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  gmt::slab::ReadAll(bytes);
  gmt::slab::ReadAll(gmt::slab::WithHeader(bytes));
  return 0;
}
