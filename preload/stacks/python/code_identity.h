// preload/stacks/python/code_identity.h
//
// Identifies code objects by address, up to Python 3.11. A code object that is destroyed and one
// that is created soon after may share not only the address: the name, the file name and the line
// table often lie at the same addresses, too. Only their contents distinguish them, and reading
// those for every frame would take longer than walking the frames.
//
// They are therefore read once, and again after code objects have been destroyed. Destructions are
// counted: the type's destructor (PyCode_Type.tp_dealloc) is replaced by ours, which counts and
// then calls the interpreter's own. (3.12 numbers its code objects and needs none of this.)
//
//   entry    key = address ^ generation ^ identity, identity
//
// Two threads may write one entry at once. The key of one with the identity of the other is the key
// of no address, and reads as a miss.
//
// Thread safety: all functions may be called from any thread, Find() also in signal handlers. No
// lock.

#ifndef GMT_PRELOAD_STACKS_PYTHON_CODE_IDENTITY_H_
#define GMT_PRELOAD_STACKS_PYTHON_CODE_IDENTITY_H_

#include <stdint.h>

#include <atomic>

#include "preload/stacks/python/layouts.h"

namespace gmt::preload {

class CodeIdentity {
 public:
  // Starts counting destructions of code objects. `code_type` is PyCode_Type, whose interpreter's
  // own code lies in [text_start, text_start + text_bytes). If counting is impossible, every walk
  // reads all contents. Calls the loader.
  static void CountDeaths(uint64_t code_type, uint64_t text_start, uint64_t text_bytes);

  // Returns the generation under which identities are cached. Read once for a few frames, all of
  // which stay running meanwhile.
  static uint64_t Generation() {
    const uint64_t deaths = counting_.load(std::memory_order_relaxed)
                                ? deaths_.load(std::memory_order_acquire)
                                : deaths_.fetch_add(1, std::memory_order_relaxed);
    return deaths * 0x9e3779b97f4a7c15;
  }

  // Returns a number that represents the code object's contents: equal for equal contents.
  // REQUIRES: a frame of this thread runs it.
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
