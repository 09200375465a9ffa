// preload/nvtx/names.h
//
// NvtxNames: strings and domains that the program has registered with NVTX. It may do so long
// before there is a session, or in a process that is never recorded, and a fork child continues to
// use the handles. They are therefore kept here, in the process's memory, and get a number in a
// session's text table when an event needs it.
//
// Bounded: all names that do not fit share one name, which has no text.
//
// Thread safety: all methods may be called from any thread and from signal handlers; lock-free.
// All-zero bytes are no names.

#ifndef GMT_PRELOAD_NVTX_NAMES_H_
#define GMT_PRELOAD_NVTX_NAMES_H_

#include <stdint.h>

#include <atomic>
#include <string_view>

namespace gmt::preload {

struct NvtxName {
  std::atomic<uint64_t> hash;  // 0: free; 1: being written
  // Process::identity << 32 | id in that process's session; ignored if it is another process's.
  std::atomic<uint64_t> known_as;
  uint32_t offset, size;  // of the text

  static constexpr uint64_t kClaimed = 1;
};

class NvtxNames {
 public:
  static constexpr uint32_t kNames = 8192;
  static constexpr uint32_t kBytes = 1 << 20;

  // Equal texts get the same name. Texts longer than session::kMaxTextLength are cut.
  NvtxName* Enter(std::string_view text);
  // Returns whether a handle is one of these rather than another tool's.
  bool Contains(const void* handle) const {
    const auto address = reinterpret_cast<uintptr_t>(handle);
    const auto start = reinterpret_cast<uintptr_t>(names_);
    return address >= start && address < start + sizeof(names_) &&
           (address - start) % sizeof(NvtxName) == 0;
  }
  std::string_view TextOf(const NvtxName& name) const { return {texts_ + name.offset, name.size}; }
  // Returns whether it is the name shared by all that did not fit.
  bool IsRefused(const NvtxName* name) const { return name == &names_[0]; }

 private:
  NvtxName* Write(NvtxName* name, uint64_t hash, std::string_view text);

  std::atomic<uint64_t> used_;  // bytes used in texts_
  NvtxName names_[1 + kNames];  // the first has no text
  char texts_[kBytes];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_NAMES_H_
