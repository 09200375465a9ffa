// session/intern_index.h
//
// InternIndex: from the hash of an entry's contents to its place in the arena, so that equal
// contents are kept once.
//
//   index word   tag (24 bits of the hash) << 40 | place in the arena (words)
//
// A writer puts its entry into the arena first and then publishes it by one compare-and-swap on an
// index word. Killed in between, it leaves words that nobody refers to; losing a race, it leaves a
// second copy and uses the winner's.
//
// Invariants
//   I1  An index word never changes once it is not 0; an entry never changes once its index word is
//       published.
//   I2  Equal contents get equal ids (unless the table was full for one of them: then id 0).
//
// Thread safety: all functions from any thread and from signal handlers, without a lock.

#ifndef GMT_SESSION_INTERN_INDEX_H_
#define GMT_SESSION_INTERN_INDEX_H_

#include <atomic>
#include <cstdint>
#include <cstring>

#include "session/layout.h"

namespace gmt::session {

// 128 bits that stand for the contents: one half for the words at even places, one for those at odd
// ones. Contents that differ in one word differ in 64 bits of chance, so that of a million entries no
// two are taken for one.
struct Digest {
  uint64_t a, b;
  bool operator==(const Digest&) const = default;
};

// Two independent chains of 64 x 64 -> 128 bit multiplications: the words of a stack share most of
// their bits, and one chain would wait for each multiplication.
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
    if (size > 0) std::memcpy(&rest, at, size);  // of nothing there may be no address
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
  // REQUIRES: count is a power of two; all words are zero at first.
  InternIndex(std::atomic<uint64_t>* words, uint64_t count) : words_(words), mask_(count - 1) {}

  // The id of the entry with this hash for which equal(id) holds; 0 where there is none.
  template <typename Equal>
  uint32_t Find(uint64_t hash, Equal equal) const {
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      const uint64_t seen = words_[(hash + probe) & mask_].load(std::memory_order_acquire);
      if (seen == 0) return 0;
      if ((seen ^ hash) >> kArenaOffsetBits == 0 && equal(Place(seen))) return Place(seen);
    }
    return 0;
  }

  // The same; where there is none, append() makes the entry and returns its place (0: no room). 0
  // when the index or the arena is full.
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
