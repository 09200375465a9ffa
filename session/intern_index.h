// session/intern_index.h
//
// InternIndex: maps the hash of an entry's contents to its place in the arena, so that equal
// contents are stored once.
//
//   index word   tag (24 bits of the hash) << 40 | place in the arena (words)
//
// A writer first puts its entry into the arena and then publishes it with one compare-and-swap on
// an index word. If it is killed in between, it leaves unreferenced words. If it loses a race, it
// leaves an unreferenced copy and uses the winner's.
//
// Invariants
//   I1  A nonzero index word never changes. An entry never changes after its index word is
//       published.
//   I2  Equal contents get equal ids, except that contents get id 0 while the table is full.
//
// Thread safety: all functions may be called from any thread and from signal handlers, without a
// lock.

#ifndef GMT_SESSION_INTERN_INDEX_H_
#define GMT_SESSION_INTERN_INDEX_H_

#include <atomic>
#include <cstdint>
#include <cstring>

#include "session/layout.h"

namespace gmt::session {

// A 128-bit hash of the contents: one half covers the words at even places, the other those at odd
// places. Contents that differ in one word differ in 64 pseudo-random bits, so collisions among a
// million entries are negligible.
struct Digest {
  uint64_t a, b;
  bool operator==(const Digest&) const = default;
};

// Two independent chains of 64 x 64 -> 128 bit multiplications. The words of a stack share most of
// their bits, hence the strong mixing; a single chain would stall on every multiplication.
class ContentHash {
 public:
  void Add(const uint64_t* words, uint32_t count) {
    uint32_t i = 0;
    for (; i + 1 < count; i += 2) {
      a_ = Fold(a_ ^ words[i], 0xa0761d6478bd642f);
      b_ = Fold(b_ ^ words[i + 1], 0xe7037ed1a0b428db);
    }
    if (i < count) a_ = Fold(a_ ^ words[i], 0x8ebc6af09c88c6e3);
    b_ ^= count;
  }
  void AddBytes(const void* bytes, uint64_t size) {
    const char* at = static_cast<const char*>(bytes);
    for (uint64_t word; size >= sizeof(word); at += sizeof(word), size -= sizeof(word)) {
      std::memcpy(&word, at, sizeof(word));
      Add(&word, 1);
    }
    uint64_t rest = size << 56;
    if (size > 0) std::memcpy(&rest, at, size);  // `at` may be null if size is 0
    Add(&rest, 1);
  }
  Digest digest() const { return {a_, b_}; }
  uint64_t value() const { return Fold(a_ ^ 0x589965cc75374cc3, b_); }

 private:
  __extension__ typedef unsigned __int128 Uint128;
  static uint64_t Fold(uint64_t a, uint64_t b) {
    const Uint128 product = static_cast<Uint128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  uint64_t a_ = 0x9e3779b97f4a7c15, b_ = 0xd1b54a32d192ed03;
};

class InternIndex {
 public:
  constexpr InternIndex() = default;
  // REQUIRES: count is a power of two; all words are initially zero.
  InternIndex(std::atomic<uint64_t>* words, uint64_t count) : words_(words), mask_(count - 1) {}

  // Returns the id of the entry with this hash for which equal(id) holds, or 0 if there is none.
  template <typename Equal>
  uint32_t Find(uint64_t hash, Equal equal) const {
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      const uint64_t seen = words_[(hash + probe) & mask_].load(std::memory_order_acquire);
      if (seen == 0) return 0;
      if ((seen ^ hash) >> kArenaOffsetBits == 0 && equal(Place(seen))) return Place(seen);
    }
    return 0;
  }

  // Like Find(), but if there is no such entry, calls append(), which creates the entry and returns
  // its place (0: no room). Returns 0 if the index or the arena is full.
  template <typename Equal, typename Append>
  uint32_t Intern(uint64_t hash, Equal equal, Append append) const {
    uint64_t appended = 0;
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      std::atomic<uint64_t>& word = words_[(hash + probe) & mask_];
      uint64_t seen = word.load(std::memory_order_acquire);
      if (seen == 0) {
        if (appended == 0) appended = append();
        if (appended == 0) return 0;
        const uint64_t tag = hash >> kArenaOffsetBits << kArenaOffsetBits;
        if (word.compare_exchange_strong(seen, tag | appended, std::memory_order_acq_rel))
          return static_cast<uint32_t>(appended);
      }
      if ((seen ^ hash) >> kArenaOffsetBits == 0 && equal(Place(seen))) return Place(seen);
    }
    return 0;
  }

 private:
  static constexpr uint32_t kProbes = 64;
  static uint32_t Place(uint64_t word) { return static_cast<uint32_t>(word); }

  std::atomic<uint64_t>* words_ = nullptr;
  uint64_t mask_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_INTERN_INDEX_H_
