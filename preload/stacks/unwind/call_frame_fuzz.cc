// A fuzzer (preset fuzz): whatever .eh_frame and its index contain, reading a rule from them
// terminates and stays inside them. The first byte chooses between raw tables, and a program and an
// expression inside valid tables.
// Run: build/fuzz/fuzz/call_frame_fuzz -max_len=4096 -timeout=5 CORPUS

#include <cstddef>
#include <cstdint>
#include <string>

#include "preload/stacks/unwind/testing/table_builder.h"
#include "preload/stacks/unwind/testing/table_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gmt::preload::testing::ReadAnywhere;
  if (size < 3) return 0;
  const uint8_t kind = data[0];
  const uint64_t offset = data[1] * 4;
  data += 2;
  size -= 2;
  if (kind % 4 == 0) {
    ReadAnywhere(data, size, offset);
    return 0;
  }
  gmt::preload::testing::TableBuilder tables;
  tables.with_index = kind % 4 != 1;
  tables.is_64_bit = kind % 8 > 3;
  if (kind >= 128) tables.augmentation = "zRS";
  const std::string bytes(reinterpret_cast<const char*>(data), size < 120 ? size : 120);
  const size_t cut = bytes.size() / 4;
  tables.common_program += bytes.substr(0, cut);
  tables.Add(bytes.substr(cut));
  tables.Add(std::string({0x0f, static_cast<char>(bytes.size())}) + bytes);
  tables.Build();
  for (uint64_t function : {0, 256}) {
    ReadAnywhere(tables.bytes().data(), tables.bytes().size(), function + offset % 256);
  }
  return 0;
}
