// preload/torch/state/forward_stacks.h
//
// ForwardStacks: from a node of PyTorch's autograd graph to the stack that made it, so that memory
// which a backward pass takes can be told by the line of the forward pass that it belongs to.
//
//   forward pass     at::sequence_number::get_and_increment() gives the node its number:
//                    Remember(thread, number, stack)
//   backward pass    Engine::evaluate_function(node): a Scope names the node
//   an allocation    StackOf(node): the node's own thread and number, then the table
//
// A table of 2 MiB, made when the first node is: an entry is found by thread and number and
// overwritten by the one of the same place 262,144 nodes later, whose check differs; a backward pass
// of a node so old finds nothing.
//
// Where a node keeps its number and thread depends on the release (torch::autograd::Node,
// function.h: the number 16 bytes behind a reference count, 24 behind a shared pointer's part, in
// what has been seen). It is found out by trying: the place is the first at which kHitsWanted nodes
// in turn had a number that the table knows and that no node had before. (The engine evaluates nodes
// in falling order of their numbers, and a later pass has higher ones. What else stands in a node
// repeats itself, but for a number that counts as the first does, and stands behind it. A flag of the
// node looks like the number of the first thread: where number and thread do not stand as in what has
// been seen, many more nodes are asked.) Until then, and where no place is found among the first
// kNodesTried nodes, there are no forward stacks.
//
// Thread safety: all methods from any thread, without a lock. Zero bytes are an empty table.

#ifndef GMT_PRELOAD_TORCH_STATE_FORWARD_STACKS_H_
#define GMT_PRELOAD_TORCH_STATE_FORWARD_STACKS_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class ForwardStacks {
 public:
  // Empties the table. REQUIRES: nobody uses it.
  void Forget();

  // `thread` is PyTorch's number of it (at::RecordFunction::currentThreadId).
  void Remember(uint64_t thread, uint64_t sequence, uint32_t stack);

  // Finds out, with each node that is evaluated, how nodes are laid out. True when that has just
  // been settled. REQUIRES: a node, which has at least 64 bytes.
  bool Learn(const void* node) {
    return state_.load(std::memory_order_relaxed) == kLearning && LearnFrom(node);
  }
  bool is_known() const { return state_.load(std::memory_order_acquire) == kKnown; }

  // 0: not known.
  uint32_t StackOf(const void* node) const;

 private:
  enum State : uint32_t { kLearning = 0, kKnown = 1, kUnknown = 2 };
  // Places of the number and, behind it, of the thread: multiples of 8 up to 56.
  static constexpr uint32_t kFirst = 8, kNumberPlaces = 4, kThreadPlaces = 6;
  static constexpr uint32_t kCandidates = kNumberPlaces * kThreadPlaces;
  static constexpr uint32_t kHitsWantedWhereSeen = 8, kHitsWantedElsewhere = 512;
  static constexpr uint32_t kNodesTried = 4096;

  static constexpr uint32_t NumberPlace(uint32_t candidate) {
    return kFirst + 8 * (candidate / kThreadPlaces);
  }
  static constexpr uint32_t ThreadPlace(uint32_t candidate) {
    return NumberPlace(candidate) + 8 * (1 + candidate % kThreadPlaces);
  }
  static constexpr uint32_t HitsWanted(uint32_t candidate) {
    const uint32_t number = NumberPlace(candidate);
    const bool seen = (number == 16 || number == 24) && ThreadPlace(candidate) == number + 24;
    return seen ? kHitsWantedWhereSeen : kHitsWantedElsewhere;
  }

  std::atomic<uint64_t>* Table();
  bool LearnFrom(const void* node);
  bool IsHit(uint32_t candidate, const void* node, uint64_t sequence);
  uint32_t Find(uint64_t thread, uint64_t sequence) const;

  // check << 32 | stack
  std::atomic<std::atomic<uint64_t>*> table_;
  std::atomic<uint32_t> state_, candidate_, nodes_;
  struct Tried {
    std::atomic<uint64_t> last, highest;
    std::atomic<uint32_t> hits;
  };
  Tried tried_[kCandidates];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_FORWARD_STACKS_H_
