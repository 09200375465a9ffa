// session/stack_table.h
//
// StackTable: every distinct stack once. A new stack shares the outer frames of an earlier one
// (session/layout.h, StackHeader): most of what a program does begins the same way, so that a
// stack of seventy frames costs the few that are new.
//
//   1st   [malloc] [linear] [forward] [step] [train] [main]
//   2nd   [malloc] [gelu]   -> the 1st's outermost four
//   3rd   [malloc] [add]    -> the 1st's outermost four, not by way of the 2nd
//
// Invariants
//   T1  A stack shares only with one that stands before it in the arena; following `outer` ends.
//   T2  It takes at most kMaxPieces pieces.
//   T3  Shared frames have the same words and, where they are an interpreter's, the same code
//       objects.
//   T4  Two stacks with one digest are one stack: what is looked for is compared by its digest, which
//       lies in one cache line, not frame by frame.
//
// Thread safety: as session/intern_index.h.

#ifndef GMT_SESSION_STACK_TABLE_H_
#define GMT_SESSION_STACK_TABLE_H_

#include <cstdint>

#include "session/arena.h"
#include "session/intern_index.h"

namespace gmt::session {

// The frames of an interned stack piece by piece, innermost first. For writers and readers: whatever
// stands in the arena, it ends and stays inside.
class StackPieces {
 public:
  StackPieces(const Arena& arena, uint32_t id);

  // Whether a stack lies there at all.
  explicit operator bool() const { return header_.depth != 0; }
  // Of the stack itself.
  uint32_t depth() const { return depth_; }
  uint16_t flags() const { return flags_; }
  uint32_t generation() const { return generation_; }

  struct Piece {
    const uint64_t* frames;
    uint32_t count;
    const uint32_t* codes;  // of its interpreter frames, in order
    uint32_t code_count;
    uint32_t stack;  // id of the stack that it stands in
  };
  // False after the last one; `left()` is then what a damaged entry lacks.
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
  // A stack being composed; hashed in one piece.
  struct Buffer {
    uint64_t head;         // depth, flags, generation: filled in by Find() and Add()
    uint64_t fingerprint;  // of the code objects of its interpreter frames; 0 where it has none
    uint64_t frames[kMaxStackDepth];
  };

  constexpr StackTable() = default;
  StackTable(const InternIndex& index, const Arena& arena) : index_(index), arena_(arena) {}

  // The stack's id; 0 where it is not there.
  uint32_t Find(Buffer* stack, uint32_t depth, uint16_t flags, uint32_t generation) const;

  // The same, and puts it there; 0 where there is no room. `codes`: the code objects of its
  // interpreter frames in order, 0 for one without a name. `like`: a stack that it may share outer
  // frames with; 0 or any id.
  uint32_t Add(Buffer* stack, uint32_t depth, uint16_t flags, uint32_t generation,
               const uint32_t* codes, uint32_t like) const;

 private:
  static constexpr uint32_t kMaxPieces = 8;
  static constexpr uint32_t kWorthSharing = 4;  // frames

  struct Shared {
    uint32_t stack = 0;
    uint32_t frames = 0;  // outermost ones
  };
  bool Equal(uint64_t place, const Digest& digest) const;
  Shared FindShared(const Buffer& stack, uint32_t depth, const uint32_t* codes,
                    uint32_t like) const;
  uint64_t Append(const Buffer& stack, uint32_t depth, const Digest& digest, const uint32_t* codes,
                  uint32_t like) const;

  InternIndex index_;
  Arena arena_;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_STACK_TABLE_H_
