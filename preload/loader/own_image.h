// preload/loader/own_image.h
//
// InOwnImage: whether an address lies in this library. Two uses: this library's own frames are left
// out of stacks, and an address of ours is never taken for the real function behind a hook. (A
// driver library that returns its own exports through its GOT returns our hook; calling that as
// "real" would recurse endlessly.)

#ifndef GMT_PRELOAD_LOADER_OWN_IMAGE_H_
#define GMT_PRELOAD_LOADER_OWN_IMAGE_H_

#include <stdint.h>

// Set by the linker: the first byte of the file's image, and the end of its memory.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) const char _end[];

namespace gmt::preload {

inline bool InOwnImage(uint64_t address) {
  return address >= reinterpret_cast<uint64_t>(__ehdr_start) &&
         address < reinterpret_cast<uint64_t>(_end);
}
inline bool InOwnImage(const void* address) {
  return InOwnImage(reinterpret_cast<uint64_t>(address));
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_LOADER_OWN_IMAGE_H_
