// session/stack_table.h
//
// StackTable: stores every distinct stack once. A new stack shares the outer frames of an earlier
// one (session/layout.h, StackHeader). Most stacks of a program start with the same outer frames,
// so a stack of seventy frames needs space only for the few new ones.
//
//   1st   [malloc] [linear] [forward] [step] [train] [main]
//   2nd   [malloc] [gelu]   -> the outermost four of the 1st
//   3rd   [malloc] [add]    -> the outermost four of the 1st, not by way of the 2nd
//
// Invariants
//   T1  A stack shares only frames of stacks that precede it in the arena, so following `outer`
//       terminates.
//   T2  A stack consists of at most kMaxPieces pieces.
//   T3  Shared frames have the same words and, for interpreter frames, the same code objects.
//   T4  Two stacks with the same digest are the same stack. A lookup compares digests, which are in
//       one cache line, and not frames.
//
// Thread safety: as session/intern_index.h.

#ifndef GMT_SESSION_STACK_TABLE_H_
#define GMT_SESSION_STACK_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "session/arena.h"
#include "session/intern_index.h"
#include "session/stack_digest.h"

namespace gmt::session {

// Iterates over the pieces of an interned stack, innermost first. Used by writers and readers. It
// terminates and stays inside the arena even if the arena is corrupt.
class StackPieces {
 public:
  StackPieces(const Arena& arena, uint32_t id);

  // Whether a valid stack is stored under the id.
  explicit operator bool() const { return header_.depth != 0; }
  // Properties of the stack itself.
  uint32_t depth() const { return depth_; }
  uint16_t flags() const { return flags_; }
  uint32_t generation() const { return generation_; }

  struct Piece {
    const uint64_t* frames;
    uint32_t count;
    const uint32_t* codes;  // of its interpreter frames, in order
    uint32_t code_count;
    uint32_t stack;  // id of the stack that holds the piece
  };
  // Returns false after the last piece. `left()` is then the number of frames missing in a corrupt
  // entry.
  bool Next(Piece* piece);
  uint32_t left() const { return left_; }

 private:
  bool Enter(uint32_t id);

  const Arena& arena_;
  StackHeader header_ = {};
  const uint64_t* entry_ = nullptr;
  uint32_t id_ = 0;
  uint32_t depth_ = 0, left_ = 0, generation_ = 0;
  uint16_t flags_ = 0;
};

class StackTable {
 public:
  // A stack being composed.
  struct Buffer {
    // Represents the code objects of its interpreter frames: the sum of their identities, each
    // times kIdentityBase to the power of the number of interpreter frames further out. 0 if it
    // has none.
    uint64_t fingerprint;
    uint64_t frames[kMaxStackDepth];
  };

  constexpr StackTable() = default;
  StackTable(const InternIndex& index, const Arena& arena) : index_(index), arena_(arena) {}

  // Returns what Find() needs. Writers that remember their last stack compute the same from what
  // has changed.
  static ContentHash HashOf(const Buffer& stack, uint32_t depth, uint16_t flags,
                            uint32_t generation);

  // Returns the id of the stack with this hash, or 0 if it is not in the table.
  uint32_t Find(const ContentHash& hash) const {
    const Digest digest = hash.digest();
    return index_.Find(hash.value(), [&](uint64_t place) { return Equal(place, digest); });
  }
  uint32_t Find(const Buffer& stack, uint32_t depth, uint16_t flags, uint32_t generation) const {
    return Find(HashOf(stack, depth, flags, generation));
  }

  // Like Find(), but adds the stack if it is missing. Returns 0 if there is no room. `codes`: the
  // ids of the code objects of its interpreter frames in order, 0 for one without a name. `like`:
  // a stack that may share its outer frames; 0 or any id.
  uint32_t Add(const Buffer& stack, uint32_t depth, uint16_t flags, uint32_t generation,
               const uint32_t* codes, uint32_t like) const;

 private:
  static constexpr uint32_t kMaxPieces = 8;
  static constexpr uint32_t kWorthSharing = 4;  // frames

  struct Shared {
    uint32_t stack = 0;
    uint32_t frames = 0;  // outermost ones
  };
  bool Equal(uint64_t place, const Digest& digest) const {
    const uint64_t* header = arena_.Find(place, sizeof(StackHeader) / sizeof(uint64_t));
    constexpr uint64_t kDigest = offsetof(StackHeader, digest) / sizeof(uint64_t);
    return header != nullptr && Digest{header[kDigest], header[kDigest + 1]} == digest;
  }
  Shared FindShared(const Buffer& stack, uint32_t depth, const uint32_t* codes,
                    uint32_t like) const;
  uint64_t Append(const Buffer& stack, StackHeader header, const uint32_t* codes,
                  uint32_t like) const;

  InternIndex index_;
  Arena arena_;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_STACK_TABLE_H_
