// format/allocator_trace.h
//
// AllocatorTrace: generates any number of events of a training loop on a caching allocator, for
// benchmarks. It simulates an allocator and does not just draw random numbers: blocks are cut from
// segments by best fit and merged again, so addresses recur as in a real recording.
//
//   step         forward: activations with temporaries between them; backward: activations in
//                reverse order, each with temporaries; occasionally memory that is kept
//   sizes        mostly from a few hundred shapes, otherwise random; multiples of 512
//   stacks       Zipf distribution over a few thousand, drawn for every allocation (a real loop
//                repeats the same order, which compresses better)
//   time         log-normal distances in nanoseconds; some calls reach the driver
//   segments     allocations of the driver, with a duration; blocks carry the allocator's totals
//   roles        on request: activations are saved by one or two autograd nodes when they are
//                created and by none shortly before they are freed, 40 events per 100 allocations.
//                With and without roles, everything else except the times is the same.
//
// Memory::BLOCK belongs to the allocator, DEVICE to the driver. `stack` is 1 to kStacks, and so is
// the `forward_stack` of a role, whose `name` is 1 to kNodeClasses. The caller sets heap and api.
// The same seed gives the same events on every platform.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_ALLOCATOR_TRACE_H_
#define GMT_FORMAT_ALLOCATOR_TRACE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "format/event.h"

namespace gmt::format {

class AllocatorTrace {
 public:
  static constexpr uint32_t kStacks = 2000;
  static constexpr uint32_t kNodeClasses = 30;
  enum class Roles { kNone, kSavedActivations };

  explicit AllocatorTrace(uint64_t seed, Roles roles = Roles::kNone);

  Event Next();

 private:
  struct Block {
    uint64_t address = 0, size = 0;
    uint32_t stack = 0;
  };
  // A piece of a segment, free or allocated; keyed by address.
  struct Piece {
    uint64_t size = 0;
    uint64_t segment = 0;
    bool small = false;
    bool free = true;
  };

  void Plan();
  void PlanForward();
  void PlanBackward();
  void Temporary();
  void Allocate(uint64_t size, std::vector<Block>* held);
  void Free(const Block& block);
  void SetRoles(const Block& block, uint32_t roles);
  void AddSegment(uint64_t for_size);
  uint64_t Take(uint64_t size);
  void GiveBack(uint64_t address);
  Event NewEvent(Kind kind, Memory memory, uint64_t address, uint64_t size);

  uint64_t Random();
  double Uniform() { return static_cast<double>(Random() >> 11) * 0x1p-53; }
  double Normal();
  uint64_t Size();
  uint32_t Stack();

  const Roles roles_;
  uint64_t random_, role_random_;
  int64_t now_ns_ = 0;
  uint32_t thread_ = 0;
  uint64_t next_segment_ = 0;
  uint64_t allocated_ = 0, reserved_ = 0;
  std::vector<uint64_t> shapes_;
  std::vector<double> stack_below_;  // cumulative distribution
  std::map<uint64_t, Piece> pieces_;
  std::set<std::tuple<bool, uint64_t, uint64_t>> free_;  // is small, size, address
  std::vector<Block> activations_;
  std::deque<Block> kept_;
  std::deque<Event> planned_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_ALLOCATOR_TRACE_H_
