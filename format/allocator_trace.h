// format/allocator_trace.h
//
// AllocatorTrace: the events of a training loop on a caching allocator, as many as one asks for, for
// benchmarks. It is an allocator, not a list of random numbers: blocks are cut out of segments by
// best fit and merged again, so that addresses come again as they do in a real recording.
//
//   a step       forward: activations, temporaries between them; backward: activations in reverse,
//                each with temporaries; now and then memory that stays
//   sizes        most from a few hundred shapes, the rest by chance; multiples of 512
//   stacks       Zipf over a few thousand, drawn anew for every allocation (a real loop repeats the
//                same order, which compresses better)
//   time         log-normal distances, nanoseconds; some calls take the driver
//   segments     allocations of the driver, with a duration; the blocks know their totals
//   roles        on request: activations are saved by one or two nodes of autograd when they were
//                made, and by none shortly before they are freed; 40 events for 100 allocations.
//                All else is the same, but for the time
//
// Memory::BLOCK is the allocator's, DEVICE the driver's. `stack` is 1 to kStacks, and so is the
// `forward_stack` of a role, whose `name` is 1 to kNodeClasses; heap and api are left to the user.
// The same seed gives the same events everywhere.
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
  // A piece of a segment, free or taken, by address.
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
  std::set<std::tuple<bool, uint64_t, uint64_t>> free_;  // of small blocks, size, address
  std::vector<Block> activations_;
  std::deque<Block> kept_;
  std::deque<Event> planned_;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_ALLOCATOR_TRACE_H_
