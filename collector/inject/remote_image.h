// collector/inject/remote_image.h
//
// RemoteImage: an ELF library in the memory of another process: the addresses of its functions and
// the end of its code.
//
// It is read from memory, because the file may have been replaced (an upgrade under a program that
// runs for weeks) or may not be visible to us (a container).
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

// The e_machine of ELF files that this machine can run.
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
  // Reads the image whose first page is mapped at `base`. Returns nullopt if it is not a 64-bit
  // image of this machine, or is damaged.
  static std::optional<RemoteImage> At(const RemoteMemory& memory, uint64_t base);

  // Returns whether the image at `base` exports `function`. Reads a few words, whereas At() reads
  // all symbols.
  static bool Exports(const RemoteMemory& memory, uint64_t base, std::string_view function);

  // Returns the address of an exported function; 0 if there is none of that name.
  uint64_t FindFunction(std::string_view name) const;
  // Returns all names of the exported function that contains `address`: malloc is often an alias of
  // an allocator's own function. Valid as long as this object.
  std::vector<std::string_view> FunctionsAt(uint64_t address) const;

  // The unused bytes after each code segment.
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
