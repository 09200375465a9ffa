// session/arena.h
//
// Arena: words that are written once and never change, given out one behind the other. Stacks,
// texts and code objects live here; their ids are their places.
//
//   [0 is never used] [entry] [entry] ...
//
// An arena may grow: its words lie in the file from the start, but only the first `backed` of them
// have memory. Who finds no room has the kernel put memory behind the next mebibyte before anybody
// writes there; a plain write could end the process (SIGBUS) where the file system is full. That may
// happen in several threads at once, for the same mebibyte: no lock, no descriptor.
//
// Thread safety: Append() from any thread and from signal handlers, without a lock. An entry may be
// read by who got its place from a word that was published after it was written.

#ifndef GMT_SESSION_ARENA_H_
#define GMT_SESSION_ARENA_H_

#include <cstdint>

#include "session/layout.h"

namespace gmt::session {

class Arena {
 public:
  constexpr Arena() = default;
  // `size`: words of file space. The memory behind them is zero at first.
  Arena(Control* control, uint64_t* words, uint64_t size)
      : control_(control), words_(words), size_(size) {}

  // Room for `count` words; its place, or 0 where there is none. The words are the caller's to fill
  // before it publishes the place.
  uint64_t Append(uint64_t count) const;
  uint64_t* at(uint64_t place) const { return words_ + place; }

  // Words [place, place + count), or nullptr where they do not lie in the arena: what stands in
  // shared memory may have been scribbled over.
  const uint64_t* Find(uint64_t place, uint64_t count) const {
    const uint64_t backed = Backed();
    return place == 0 || place >= backed || count > backed - place ? nullptr : words_ + place;
  }

  // Words that may be touched.
  uint64_t Backed() const {
    const uint64_t backed = control_->arena_backed.load(std::memory_order_acquire);
    return backed < size_ ? backed : size_;
  }

 private:
  bool Fits(uint64_t from, uint64_t count) const;
  bool Grow(uint64_t backed) const;

  Control* control_ = nullptr;
  uint64_t* words_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_ARENA_H_
