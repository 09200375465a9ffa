// preload/nvtx/push_stacks.h
//
// PushStacks: the ranges that each thread has pushed and not popped yet, of all domains in one list.
// NVTX wants the level of a range in its domain back from both calls. A range may be pushed before
// there is a session: it is kept with its name, and told to the session once there is one.
//
//   thread 1   epoch (-)   step (loader)   copy (loader)     level of "copy": 1
//
// Bounded: kThreads threads that push at one time, kDepth ranges of each, names of kName bytes of
// those that wait for a session. Further ranges of a thread have their level and no more.
//
// A thread has its list for good; those of threads that have ended are taken over when all are taken.
//
// Thread safety: Mine() from any thread; a list belongs to its thread. A signal handler may push and
// pop in the middle of its thread's own calls, as much as it pushes. Zero bytes are no lists.

#ifndef GMT_PRELOAD_NVTX_PUSH_STACKS_H_
#define GMT_PRELOAD_NVTX_PUSH_STACKS_H_

#include <stdint.h>

#include <atomic>
#include <string_view>

namespace gmt::preload {

struct NvtxName;

struct PushedRange {
  NvtxName* domain;      // nullptr: the default one
  uint64_t range;        // number in the session of `recorded_by`; 0: not recorded
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

  std::atomic<uint64_t> owner;  // address of its thread's state; 0: nobody's
  std::atomic<uint32_t> tid;
  uint32_t told;    // Process::identity of the session that knows all of `ranges`
  uint32_t depth;   // of `ranges`
  uint32_t beyond;  // pushed on top of them without being kept
  PushedRange ranges[kDepth];

  // Ranges of this domain that are kept.
  int LevelsOf(const NvtxName* domain) const;
  // The innermost of this domain, or kDepth.
  uint32_t Innermost(const NvtxName* domain) const;
  // nullptr where it is full; then it is counted in `beyond`.
  PushedRange* Push();
  void Remove(uint32_t place);
};

class PushStacks {
 public:
  static constexpr uint32_t kThreads = 512;

  // That of the calling thread; nullptr where more threads push than are kept.
  PushStack* Mine();
  // The same where it has one already.
  PushStack* MineIfAny();

 private:
  PushStack* Claim();
  PushStack* TakeOver(uint64_t self, uint32_t tid);

  PushStack stacks_[kThreads];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_NVTX_PUSH_STACKS_H_
