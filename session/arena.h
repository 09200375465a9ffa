// session/arena.h
//
// Arena: an append-only store of words that are written once and never change. Stacks, texts and
// code objects are stored here; their ids are their places.
//
//   [0 is never used] [entry] [entry] ...
//
// An arena may grow. The file has space for all its words from the start, but only the first
// `backed` words have memory. A thread that finds no room asks the kernel for memory for the next
// mebibyte before any thread writes there, because a plain write would end the process with SIGBUS
// if the file system is full. Several threads may do so at once for the same mebibyte; this needs
// no lock and no file descriptor.
//
// Thread safety: Append() may be called from any thread and from signal handlers, without a lock. A
// thread may read an entry if it obtained the place from a word published after the entry was
// written.

#ifndef GMT_SESSION_ARENA_H_
#define GMT_SESSION_ARENA_H_

#include <cstdint>

#include "session/layout.h"

namespace gmt::session {

class Arena {
 public:
  constexpr Arena() = default;
  // `size`: words of file space. Their memory is initially zero.
  Arena(Control* control, uint64_t* words, uint64_t size)
      : control_(control), words_(words), size_(size) {}

  // Allocates `count` words. Returns their place, or 0 if there is no room. The caller fills the
  // words before it publishes the place.
  uint64_t Append(uint64_t count) const;
  uint64_t* at(uint64_t place) const { return words_ + place; }

  // Returns words [place, place + count), or nullptr if they are not inside the arena. Places read
  // from shared memory may be corrupt.
  const uint64_t* Find(uint64_t place, uint64_t count) const {
    const uint64_t backed = Backed();
    return place == 0 || place >= backed || count > backed - place ? nullptr : words_ + place;
  }

  // Returns the number of words that may be accessed.
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
