// preload/nvtx/push_stacks.h
//
// PushStacks: the ranges that each thread has pushed and not yet popped, of all domains in one
// list. Both NVTX calls return the level of a range in its domain. A range may be pushed before
// there is a session. It is then kept with its name and recorded when a session starts.
//
//   thread 1   epoch (-)   step (loader)   copy (loader)     level of "copy": 1
//
// Bounded: kThreads threads with pushed ranges at a time, kDepth ranges of each, and sizeof(name)
// bytes for the names of ranges that wait for a session. Further ranges of a thread only count for
// its level.
//
// A thread keeps its list permanently. When all lists are taken, those of threads that have ended
// are reused.
//
// Thread safety: Mine() from any thread; a list belongs to its thread. A signal handler may push
// and pop during its thread's own calls if it pops as much as it pushes. All-zero bytes are no
// lists.

#ifndef GMT_PRELOAD_NVTX_PUSH_STACKS_H_
#define GMT_PRELOAD_NVTX_PUSH_STACKS_H_

#include <stdint.h>

#include <atomic>
#include <string_view>

namespace gmt::preload {

struct NvtxName;

struct PushedRange {
  NvtxName* domain;      // nullptr: the default domain
  uint64_t range;        // number in the session given by `recorded_by`; 0: not recorded
  NvtxName* registered;  // its name, or
  uint32_t recorded_by;  // Process::identity
  uint32_t color;
  uint32_t name_size;
  char name[92];

  std::string_view text() const { return {name, name_size}; }
};
static_assert(sizeof(PushedRange) == 128);

struct PushStack {
  static constexpr uint32_t kDepth = 64;

  std::atomic<uint64_t> owner;  // address of its thread's state; 0: unowned
  std::atomic<uint32_t> tid;
  uint32_t recorded_in;  // Process::identity of the session in which all of `ranges` are recorded
  uint32_t depth;        // number of `ranges`
  uint32_t beyond;       // number pushed on top of them without being kept
  PushedRange ranges[kDepth];

  // Returns the number of kept ranges of this domain.
  int LevelsOf(const NvtxName* domain) const;
  // Returns the index of the innermost range of this domain, or kDepth.
  uint32_t Innermost(const NvtxName* domain) const;
  // Returns nullptr if the list is full; the range is then counted in `beyond`.
  PushedRange* Push();
  void Remove(uint32_t place);
};

class PushStacks {
 public:
  static constexpr uint32_t kThreads = 512;

  // Returns the list of the calling thread; nullptr if more threads push than can be kept.
  PushStack* Mine();
  // Same, but only if it already has one.
  PushStack* MineIfAny();

 private:
  PushStack* Claim();
  PushStack* TakeOver(uint64_t self, uint32_t tid);

  PushStack stacks_[kThreads];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_PUSH_STACKS_H_
