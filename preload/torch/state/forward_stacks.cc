#include "preload/torch/state/forward_stacks.h"

#include <string.h>
#include <sys/mman.h>

namespace gmt::preload {
namespace {

constexpr uint64_t kEntries = 1 << 18;
constexpr uint64_t kBytes = kEntries * sizeof(std::atomic<uint64_t>);
constexpr uint32_t kNodeBytes = 64;  // minimum size in every release

// The number of leaf nodes, in which gradients are accumulated.
constexpr uint64_t kNoNumber = ~uint64_t{0};

uint64_t Word(const void* node, uint32_t offset) {
  uint64_t word;
  memcpy(&word, static_cast<const char*>(node) + offset, sizeof(word));
  return word;
}

bool IsLeaf(const void* node) {
  for (uint32_t place = 0; place < kNodeBytes; place += sizeof(uint64_t)) {
    if (Word(node, place) == kNoNumber) return true;
  }
  return false;
}

uint64_t Mixed(uint64_t thread, uint64_t sequence) {
  uint64_t x = thread * 0x9e3779b97f4a7c15 + sequence;
  x ^= x >> 31;
  return x * 0xd6e8feb86659fd93;
}

// Consecutive numbers of one thread occupy consecutive slots.
uint64_t PlaceOf(uint64_t thread, uint64_t sequence) {
  return (thread * 40503 + sequence) & (kEntries - 1);
}

uint32_t CheckOf(uint64_t thread, uint64_t sequence) {
  return static_cast<uint32_t>(Mixed(thread, sequence) >> 32);
}

}  // namespace

std::atomic<uint64_t>* ForwardStacks::Table() {
  std::atomic<uint64_t>* table = table_.load(std::memory_order_acquire);
  if (table != nullptr) return table;
  void* fresh = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return nullptr;
  madvise(fresh, kBytes, MADV_DONTFORK);
  if (table_.compare_exchange_strong(table, static_cast<std::atomic<uint64_t>*>(fresh)))
    return static_cast<std::atomic<uint64_t>*>(fresh);
  munmap(fresh, kBytes);
  return table;
}

void ForwardStacks::Forget() {
  std::atomic<uint64_t>* table = table_.load(std::memory_order_acquire);
  if (table == nullptr || madvise(table, kBytes, MADV_DONTNEED) == 0) return;
  for (uint64_t i = 0; i < kEntries; ++i) table[i].store(0, std::memory_order_relaxed);
}

void ForwardStacks::Remember(uint64_t thread, uint64_t sequence, uint32_t stack) {
  std::atomic<uint64_t>* table = Table();
  if (table == nullptr) return;
  table[PlaceOf(thread, sequence)].store(uint64_t{CheckOf(thread, sequence)} << 32 | stack,
                                         std::memory_order_release);
}

uint32_t ForwardStacks::Find(uint64_t thread, uint64_t sequence) const {
  const std::atomic<uint64_t>* table = table_.load(std::memory_order_acquire);
  if (table == nullptr) return 0;
  const uint64_t entry = table[PlaceOf(thread, sequence)].load(std::memory_order_acquire);
  return entry >> 32 == CheckOf(thread, sequence) ? static_cast<uint32_t>(entry) : 0;
}

uint32_t ForwardStacks::StackOf(const void* node) const {
  if (!is_known()) return 0;
  const uint32_t candidate = candidate_.load(std::memory_order_relaxed);
  return Find(Word(node, ThreadPlace(candidate)), Word(node, NumberPlace(candidate)));
}

bool ForwardStacks::IsHit(uint32_t candidate, const void* node, uint64_t sequence) {
  Tried& tried = tried_[candidate];
  const uint64_t last = tried.last.exchange(sequence, std::memory_order_relaxed);
  const uint64_t highest = tried.highest.load(std::memory_order_relaxed);
  const bool is_new = sequence < last || sequence > highest;
  if (sequence > highest) tried.highest.store(sequence, std::memory_order_relaxed);
  return is_new && Find(Word(node, ThreadPlace(candidate)), sequence) != 0;
}

bool ForwardStacks::LearnFrom(const void* node) {
  uint32_t learning = kLearning;
  if (IsLeaf(node)) return false;
  for (uint32_t c = 0; c < kCandidates; ++c) {
    if (ThreadPlace(c) + sizeof(uint64_t) > kNodeBytes) continue;
    if (!IsHit(c, node, Word(node, NumberPlace(c)))) {
      tried_[c].hits.store(0, std::memory_order_relaxed);
    } else if (tried_[c].hits.fetch_add(1, std::memory_order_relaxed) + 1 == HitsWanted(c)) {
      candidate_.store(c, std::memory_order_relaxed);
      return state_.compare_exchange_strong(learning, kKnown);
    }
  }
  const uint32_t nodes = nodes_.fetch_add(1, std::memory_order_relaxed) + 1;
  return nodes == kNodesTried && state_.compare_exchange_strong(learning, kUnknown);
}

}  // namespace gmt::preload
