// session/intern_table.h
//
// InternTable: every distinct run of 64-bit words once, in an append-only arena, found by hash.
// StackTable and TextTable below are its two uses.
//
//   index word   tag (24 bits of the hash) << 40 | offset in the arena (words)
//   arena        [0 is never used] [entry] [entry] ...
//
// A writer puts its entry into the arena first and then publishes it by one compare-and-swap on an
// index word. Killed in between, it leaves words that nobody refers to; losing a race, it leaves a
// second copy and uses the winner's.
//
// An arena may grow (ArenaGrowth): its words lie in the file from the start, but only the first
// `backed` of them have memory. Who finds no room has the kernel put memory behind the next
// mebibyte before anybody writes there; a plain write could end the process (SIGBUS) where the file
// system is full. That may happen in several threads at once, for the same mebibyte: no lock, no
// descriptor.
//
// Invariants
//   I1  An index word never changes once it is not 0; an entry never changes once its index word is
//       published.
//   I2  Equal words get equal ids (unless the table was full for one of them: then id 0).
//
// Thread safety: Intern() from any thread and from signal handlers, without a lock.

#ifndef GMT_SESSION_INTERN_TABLE_H_
#define GMT_SESSION_INTERN_TABLE_H_

#include <atomic>
#include <cstdint>
#include <string_view>

#include "session/layout.h"

namespace gmt::session {

// Where an arena keeps how far it has grown; none of an arena that has all its memory.
struct ArenaGrowth {
  std::atomic<uint64_t>* backed = nullptr;  // words, only ever raised
  std::atomic<uint32_t>* error = nullptr;   // errno of the growth that failed; the last one tried
};

class InternTable {
 public:
  constexpr InternTable() = default;
  // REQUIRES: index_count is a power of two; all memory is zero at first. `used` counts the words
  // of the arena in use.
  InternTable(std::atomic<uint64_t>* index, uint64_t index_count, uint64_t* arena,
              uint64_t arena_words, std::atomic<uint64_t>* used, const ArenaGrowth& growth)
      : index_(index),
        index_mask_(index_count - 1),
        arena_(arena),
        arena_words_(arena_words),
        used_(used),
        growth_(growth) {}

  // The id of these words (an offset in the arena, never 0); 0 when the index or the arena is full.
  // *is_new: whether this call published the entry.
  uint32_t Intern(const uint64_t* words, uint32_t count, bool* is_new) const;

 private:
  static constexpr uint32_t kProbes = 64;

  uint64_t Backed() const;
  bool Grow(uint64_t backed) const;
  uint64_t Append(const uint64_t* words, uint32_t count) const;
  bool Equal(uint64_t offset, const uint64_t* words, uint32_t count) const;

  std::atomic<uint64_t>* index_ = nullptr;
  uint64_t index_mask_ = 0;
  uint64_t* arena_ = nullptr;
  uint64_t arena_words_ = 0;
  std::atomic<uint64_t>* used_ = nullptr;
  ArenaGrowth growth_;
};

// Entry: StackHeader, then frames (session/layout.h).
class StackTable {
 public:
  // A stack being composed: room for the header before the frames, so that it is interned in one
  // piece.
  struct Buffer {
    uint64_t header;
    uint64_t frames[kMaxStackDepth];
  };

  constexpr StackTable() = default;
  explicit StackTable(const InternTable& table) : table_(table) {}

  uint32_t Intern(Buffer* stack, uint32_t depth, uint16_t flags, uint32_t generation,
                  bool* is_new) const;

 private:
  InternTable table_;
};

// Entry: length in bytes (low half of the first word), then the bytes.
class TextTable {
 public:
  constexpr TextTable() = default;
  explicit TextTable(const InternTable& table) : table_(table) {}

  // Texts longer than kMaxTextLength are cut.
  uint32_t Intern(std::string_view text) const;

 private:
  InternTable table_;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_INTERN_TABLE_H_
