// collector/inject/memory_map.h
//
// The mappings of a process, from /proc/PID/maps.
//
// Thread safety: free functions; values are plain.

#ifndef GMT_COLLECTOR_INJECT_MEMORY_MAP_H_
#define GMT_COLLECTOR_INJECT_MEMORY_MAP_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::inject {

struct Mapping {
  uint64_t start = 0, end = 0, offset = 0, inode = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::string path;  // "[stack]"; may end in " (deleted)"; empty for nameless memory

  bool Holds(uint64_t address) const { return address >= start && address < end; }
  // Returns the file's own name, without folder and " (deleted)".
  std::string_view Name() const;
};

using MemoryMap = std::vector<Mapping>;  // by address

MemoryMap ParseMemoryMap(std::string_view text);
// Returns PERMISSION_DENIED, or NOT_FOUND if the process is gone.
absl::StatusOr<MemoryMap> ReadMemoryMap(pid_t pid);

// Returns nullptr if nothing is mapped there.
const Mapping* FindMapping(const MemoryMap& map, uint64_t address);

// Classify files by their names.
bool IsLibc(const Mapping& mapping);    // glibc's libc
bool IsLoader(const Mapping& mapping);  // the dynamic linker
bool IsMusl(const Mapping& mapping);
bool IsAllocator(const Mapping& mapping);  // jemalloc, tcmalloc, mimalloc ...

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_MEMORY_MAP_H_
