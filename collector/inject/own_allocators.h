// collector/inject/own_allocators.h
//
// OwnAllocators: the images of a process that contain an allocator of their own, which means that
// they export malloc and are neither libc nor the loader. jemalloc, tcmalloc and AddressSanitizer
// may be linked into the program itself, so that file names do not reveal them. A thread that
// executes code of such an image may hold its locks.
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
  // Reads a few words of every mapped image. Keeps the first 16 that export malloc.
  static OwnAllocators Find(const RemoteMemory& memory, const MemoryMap& map);

  bool any() const { return !images_.empty(); }
  // Whether the mapping belongs to such an image.
  bool Holds(const Mapping& mapping) const { return images_.contains(mapping.path); }
  // Returns all names of the image's exported function that contains `address`; none if it has no
  // name. Valid as long as this object.
  std::vector<std::string_view> FunctionsAt(const Mapping& mapping, uint64_t address) const;

 private:
  std::map<std::string, RemoteImage> images_;  // by path
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_OWN_ALLOCATORS_H_
