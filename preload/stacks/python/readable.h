// preload/stacks/python/readable.h
//
// CarefulReader: reads memory that may not be mapped, without crashing.
//
// Thread safety: any thread, signal handlers. Cost: a system call for each page not seen recently.

#ifndef GMT_PRELOAD_STACKS_PYTHON_READABLE_H_
#define GMT_PRELOAD_STACKS_PYTHON_READABLE_H_

#include <stdint.h>
#include <string.h>

#include "preload/base/memory.h"

namespace gmt::preload {

class CarefulReader {
 public:
  // Returns false if some of these bytes cannot be read; *value is then unchanged.
  template <typename T>
  bool Read(uint64_t address, T* value) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    if (!Readable(address & ~uint64_t{7}) || !Readable((address + sizeof(T) - 1) & ~uint64_t{7})) {
      return false;
    }
    memcpy(value, reinterpret_cast<const void*>(address), sizeof(T));
    return true;
  }

 private:
  bool Readable(uint64_t word) {
    if (word < kPage) return false;  // in pages_, 0 means "none"
    if (word / kPage == pages_[0] || word / kPage == pages_[1]) return true;
    const bool readable = IsReadable(word);
    if (readable) {
      pages_[older_] = word / kPage;
      older_ ^= 1;
    }
    return readable;
  }

  uint64_t pages_[2] = {};  // the last two pages found readable
  uint32_t older_ = 0;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_READABLE_H_
