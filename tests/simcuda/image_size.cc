#include "tests/simcuda/image_size.h"

#include <elf.h>

#include <cstring>

namespace sim {
namespace {

// Layouts of the toolkit's fatbinary_section.h and fatbinary.h.
struct FatBinaryWrapper {
  uint32_t magic;
  uint32_t version;
  const void* data;
};
constexpr uint32_t kWrapperMagic = 0x466243b1;

struct FatBinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_size;
  uint64_t fat_size;  // bytes after the header
};
constexpr uint32_t kFatBinaryMagic = 0xba55ed50;

}  // namespace

uint64_t ImageSize(const void* image) {
  // Reads no byte past the end of an image: test programs load "".
  if (image == nullptr ||
      std::strchr("\xb1\x50\x7f/.", *static_cast<const char*>(image)) == nullptr ||
      *static_cast<const char*>(image) == '\0') {
    return 0;
  }
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic == kWrapperMagic) return ImageSize(static_cast<const FatBinaryWrapper*>(image)->data);
  if (magic == kFatBinaryMagic) {
    auto header = static_cast<const FatBinaryHeader*>(image);
    return header->header_size + header->fat_size;
  }
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0) {
    // The section table is the last part of a cubin.
    auto header = static_cast<const Elf64_Ehdr*>(image);
    return header->e_shoff + uint64_t{header->e_shnum} * header->e_shentsize;
  }
  if (std::memcmp(image, "//", 2) == 0 || std::memcmp(image, ".ver", 4) == 0) {
    return std::strlen(static_cast<const char*>(image)) + 1;
  }
  return 0;
}

}  // namespace sim
