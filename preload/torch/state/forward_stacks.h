// preload/torch/state/forward_stacks.h
//
// ForwardStacks: maps a node of PyTorch's autograd graph to the stack that created it, so that
// memory taken by a backward pass can be attributed to its line of the forward pass.
//
//   forward pass     at::sequence_number::get_and_increment() gives the node its number:
//                    Remember(thread, number, stack)
//   backward pass    Engine::evaluate_function(node): a Scope names the node
//   an allocation    StackOf(node): the node's own thread and number, then the table
//
// The table takes 2 MiB and is created with the first node. An entry is found by thread and
// sequence number. It is overwritten by the entry of the same slot 262,144 nodes later, whose check
// word differs, so a backward pass of an older node finds nothing.
//
// The position of number and thread inside a node depends on the release (torch::autograd::Node,
// function.h; in all versions seen, the number is 16 bytes after a reference count or 24 bytes
// after a shared pointer's part). It is determined by trial: the position is the first at which
// kHitsWanted* consecutive nodes had a number that the table knows and that no earlier node had.
// (The engine evaluates nodes in descending order of their numbers, and a later pass has higher
// ones. Other words of a node repeat between nodes, except a counter that advances like the number
// and lies after it. A flag of the node can look like the number of the first thread, so a
// combination of number and thread positions that has not been seen before needs many more nodes.)
// Until the position is known, and if it is not found within the first kNodesTried nodes, there are
// no forward stacks.
//
// Thread safety: all methods may be called from any thread; lock-free. All-zero bytes are an empty
// table.

#ifndef GMT_PRELOAD_TORCH_STATE_FORWARD_STACKS_H_
#define GMT_PRELOAD_TORCH_STATE_FORWARD_STACKS_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class ForwardStacks {
 public:
  // Empties the table. REQUIRES: no thread is using it.
  void Forget();

  // `thread` is PyTorch's number for it (at::RecordFunction::currentThreadId).
  void Remember(uint64_t thread, uint64_t sequence, uint32_t stack);

  // Determines, from each node that is evaluated, how nodes are laid out. Returns true if that has
  // just been settled. REQUIRES: a node, which has at least 64 bytes.
  bool Learn(const void* node) { return is_learning() && LearnFrom(node); }
  bool is_learning() const { return state_.load(std::memory_order_relaxed) == kLearning; }
  bool is_known() const { return state_.load(std::memory_order_acquire) == kKnown; }

  // Returns 0 if the stack is unknown.
  uint32_t StackOf(const void* node) const;

 private:
  enum State : uint32_t { kLearning = 0, kKnown = 1, kUnknown = 2 };
  // Possible positions of the number and, after it, of the thread: multiples of 8 up to 56.
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
