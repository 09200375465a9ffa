// preload/stacks/python/code_identity.h
//
// Which code object an address stands for, up to Python 3.11. A code object that goes and one that
// is made soon share not only the address: the name, the file name and the table of lines often lie
// where those of the other have lain. Only what they say tells them apart, and reading all of that
// for every frame would take longer than walking them.
//
// So it is read once, and again when code objects have died since. Their deaths are counted: the
// type's destructor (PyCode_Type.tp_dealloc) is ours from then on, which counts and goes on to the
// interpreter's own. (3.12 numbers its code objects, and needs none of this.)
//
//   entry    key = address ^ generation ^ identity, identity
//
// Two threads may write one entry at once; a key of one and an identity of the other are the key of
// no address, and read as "not known".
//
// Thread safety: all functions from any thread, Find() also in signal handlers. No lock.

#ifndef GMT_PRELOAD_STACKS_PYTHON_CODE_IDENTITY_H_
#define GMT_PRELOAD_STACKS_PYTHON_CODE_IDENTITY_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/python/layouts.h"

namespace gmt::preload {

class CodeIdentity {
 public:
  // Begins to count the deaths of code objects: `code_type` is PyCode_Type, whose interpreter's own
  // code lies in [text_start, text_start + text_bytes). Where that cannot be, every walk reads all.
  // Asks the loader.
  static void CountDeaths(uint64_t code_type, uint64_t text_start, uint64_t text_bytes);

  // What identities are known under. Taken once for a few frames that run all the while.
  static uint64_t Generation() {
    const uint64_t deaths = counting_.load(std::memory_order_relaxed)
                                ? deaths_.load(std::memory_order_acquire)
                                : deaths_.fetch_add(1, std::memory_order_relaxed);
    return deaths * 0x9e3779b97f4a7c15;
  }

  // A number for what the code object says: the same for two that say the same. REQUIRES: a frame
  // of this thread runs it.
  static uint64_t Find(uint64_t code, uint64_t generation, const Layout& layout) {
    const Entry& entry = entries_[code / 16 % kEntries];
    const uint64_t identity = entry.identity.load(std::memory_order_relaxed);
    const uint64_t key = code ^ generation ^ identity;
    if (entry.key.load(std::memory_order_relaxed) == key) [[likely]]
      return identity;
    return Read(code, generation, layout);
  }

 private:
  static constexpr uint64_t kEntries = 4096;
  struct Entry {
    std::atomic<uint64_t> key, identity;
  };

  static uint64_t Read(uint64_t code, uint64_t generation, const Layout& layout);
  static void CountDeath(void* code);

  static constinit std::atomic<bool> counting_;
  static constinit std::atomic<uint64_t> deaths_;
  static constinit std::atomic<void (*)(void*)> destructor_;
  static constinit Entry entries_[kEntries];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_CODE_IDENTITY_H_
