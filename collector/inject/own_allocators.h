// collector/inject/own_allocators.h
//
// OwnAllocators: which images of a process bring an allocator of their own: those besides libc and the
// loader that export malloc. jemalloc, tcmalloc and AddressSanitizer may be linked into the program itself,
// and no file's name tells. Whoever is inside of one may have its locks.
//
// Thread safety: none.

#ifndef GMT_COLLECTOR_INJECT_OWN_ALLOCATORS_H_
#define GMT_COLLECTOR_INJECT_OWN_ALLOCATORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/inject/memory_map.h"
#include "collector/inject/remote_image.h"
#include "collector/inject/remote_memory.h"

namespace gmt::inject {

class OwnAllocators {
 public:
  // Looks at every image that is mapped, some words of each; of those that export malloc the first 16
  // are taken.
  static OwnAllocators Find(const RemoteMemory& memory, const MemoryMap& map);

  bool any() const { return !images_.empty(); }
  // Whether this mapping is of such an image.
  bool Holds(const Mapping& mapping) const { return images_.contains(mapping.path); }
  // All names of such an image's exported function that `address` lies in; none where it has no name.
  // Valid for as long as this.
  std::vector<std::string_view> FunctionsAt(const Mapping& mapping, uint64_t address) const;

 private:
  std::map<std::string, RemoteImage> images_;  // by path
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_OWN_ALLOCATORS_H_
