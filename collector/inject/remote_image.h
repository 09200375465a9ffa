// collector/inject/remote_image.h
//
// RemoteImage: an ELF library as it lies in the memory of another process: where a function of it
// begins, and where its code ends.
//
// Read from memory and not from the file, because the file may be another by now (an upgrade under a
// program that runs for weeks), or lie where we cannot see it (a container).
//
// Thread safety: const; any thread.

#ifndef GMT_COLLECTOR_INJECT_REMOTE_IMAGE_H_
#define GMT_COLLECTOR_INJECT_REMOTE_IMAGE_H_

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/inject/memory_map.h"
#include "collector/inject/remote_memory.h"

namespace gmt::inject {

// What an ELF file says that this machine can run (e_machine).
#if defined(__aarch64__)
inline constexpr uint16_t kThisMachine = EM_AARCH64;
#else
inline constexpr uint16_t kThisMachine = EM_X86_64;
#endif

// Bytes between the end of a library's code and the end of its last page.
struct CodeTail {
  uint64_t address = 0;
  uint64_t size = 0;
};

class RemoteImage {
 public:
  // Of the image whose first page is mapped at `base`. Nothing where that is no 64-bit image of this
  // machine, or damaged.
  static std::optional<RemoteImage> At(const RemoteMemory& memory, uint64_t base);

  // Whether the image at `base` exports that function. Reads a few words, where At() reads all symbols.
  static bool Exports(const RemoteMemory& memory, uint64_t base, std::string_view function);

  // Address of an exported function; 0 where it exports none of that name.
  uint64_t FindFunction(std::string_view name) const;
  // All names of the exported function that `address` lies in: malloc is often another name of the
  // allocator's own function. Valid for as long as this.
  std::vector<std::string_view> FunctionsAt(uint64_t address) const;

  // Behind each segment that is code.
  const std::vector<CodeTail>& code_tails() const { return code_tails_; }

 private:
  RemoteImage() = default;
  void ReadSymbols(const RemoteMemory& memory, uint64_t dynamic, uint64_t size);
  std::string_view NameOf(const Elf64_Sym& symbol) const;

  uint64_t bias_ = 0;
  std::vector<CodeTail> code_tails_;
  std::vector<Elf64_Sym> symbols_;
  std::string names_;
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_REMOTE_IMAGE_H_
