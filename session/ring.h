// session/ring.h
//
// Ring: the history of a traced process, shared by any number of writers (its threads) and one
// reader (the collector), in memory that outlives both.
//
// A writer never waits, never fails and never looks at the reader: if the ring is full, it
// overwrites the oldest record. The reader detects this from the ticket numbers and reports
// exactly what it missed.
//
//   ticket      0    1    2    3    4    5   ...        capacity 4: ticket 4 overwrites the slot of
//                                                       ticket 0
//   slot        0    1    2    3    0    1
//
// Invariants
//   R1  Ticket order is a valid order of the calls: a free takes its ticket before the real free,
//       an allocation after the real allocation. So free(p) precedes the allocation that returns p
//       again.
//   R2  A slot whose commit word is ticket + 1 holds that record completely. Any other value means
//       busy, torn, abandoned or overwritten.
//   R3  The live table is updated between Reserve() and Commit(). If all tickets below S are
//       committed, the table reflects all of them.
//   R4  tail - the reader's first ticket == delivered + overrun + holes + abandoned + backlog, at
//       every instant.
//
// Thread safety: RingWriter may be used from any thread and from signal handlers, RingReader by one
// thread at a time.
// Neither takes a lock.

#ifndef GMT_SESSION_RING_H_
#define GMT_SESSION_RING_H_

#include <cstdint>

#include "session/layout.h"
#include "session/record.h"

namespace gmt::session {

class RingWriter {
 public:
  struct Reservation {
    uint64_t ticket;
    // False: the slot is held by a writer one whole lap behind; Commit() will abandon the ticket.
    bool claimed;
  };

  constexpr RingWriter() = default;
  // REQUIRES: capacity is a power of two.
  RingWriter(Control* control, Slot* slots, uint64_t capacity)
      : control_(control), slots_(slots), mask_(capacity - 1) {}

  // Prefetches the slot of the next ticket.
  void PrepareToReserve() const {
    const uint64_t ticket = control_->tail.load(std::memory_order_relaxed);
    __builtin_prefetch(&slots_[ticket & mask_], /*for writing*/ 1);
  }

  // Takes the next ticket. The reader has to wait between Reserve() and Commit(), so compose the
  // record before.
  Reservation Reserve() const {
    const uint64_t ticket = control_->tail.fetch_add(1, std::memory_order_relaxed);
    std::atomic<uint64_t>& commit = slots_[ticket & mask_].commit;
    uint64_t seen = commit.load(std::memory_order_relaxed);
    // Accept any older committed value. Requiring exactly the previous lap's would make the slot
    // unusable after one abandoned ticket.
    while (!(seen & kBusy) && seen <= ticket) {
      if (commit.compare_exchange_weak(seen, kBusy | ticket, std::memory_order_relaxed))
        return {ticket, true};
    }
    return {ticket, false};
  }

  void Commit(Reservation reservation, const Words& words) const {
    if (!reservation.claimed) return GiveUp(reservation.ticket);
    Slot& slot = slots_[reservation.ticket & mask_];
    // Release stores make the busy mark visible before any word of the payload, without a fence.
#pragma GCC unroll 7
    for (size_t i = 0; i < words.size(); ++i)
      slot.words[i].store(words[i], std::memory_order_release);
    slot.commit.store(reservation.ticket + 1, std::memory_order_release);
  }

 private:
  void GiveUp(uint64_t ticket) const {
    constexpr uint64_t kEntries = sizeof(Control::abandoned_tickets) / sizeof(uint64_t);
    const uint64_t n = control_->counters[kAbandoned].fetch_add(1, std::memory_order_acq_rel);
    control_->abandoned_tickets[n % kEntries].store(ticket + 1, std::memory_order_release);
  }

  Control* control_ = nullptr;
  Slot* slots_ = nullptr;
  uint64_t mask_ = 0;
};

// Accounting of all tickets taken so far (R4).
struct RingLosses {
  uint64_t written = 0;
  uint64_t delivered = 0;
  uint64_t overrun = 0;
  uint64_t holes = 0;
  uint64_t abandoned = 0;
  uint64_t backlog = 0;
};

class RingReader {
 public:
  enum class Outcome {
    kRecord,  // *record and *ticket are set
    kEmpty,   // everything written has been read
    // The next record is being written: try again, or call SkipPending() if its writer is known to
    // be dead.
    kPending,
    kLost,  // tickets were lost; *lost is set
  };
  enum class Loss { kOverrun, kHole, kAbandoned, kScribbled };
  struct Lost {
    uint64_t first, last;  // tickets; inclusive range
    Loss why;
  };

  // `first`: the ticket to start with.
  RingReader(const Control* control, const Slot* slots, uint64_t capacity, uint64_t first = 0)
      : control_(control), slots_(slots), capacity_(capacity), first_(first), next_(first) {}

  // Advances by one record or one loss.
  Outcome Next(Record* record, uint64_t* ticket, Lost* lost);

  // Skips the ticket for which Next() returned kPending and counts it as a hole.
  Lost SkipPending();

  // Returns the commit word of the ticket's slot. If the slot was busy with an older ticket that
  // the reader has skipped, a change of the word shows that the late writer finished after all and
  // therefore updated the live table.
  uint64_t CommitWord(uint64_t ticket) const {
    return slots_[ticket & (capacity_ - 1)].commit.load(std::memory_order_acquire);
  }

  uint64_t position() const { return next_; }  // the ticket that Next() reads next
  uint64_t tail() const { return control_->tail.load(std::memory_order_acquire); }
  uint64_t capacity() const { return capacity_; }
  RingLosses losses() const;

 private:
  Outcome Lose(uint64_t last, Loss why, Lost* lost);
  Outcome LoseOverrun(Lost* lost);
  bool WasAbandoned(uint64_t ticket) const;

  const Control* control_;
  const Slot* slots_;
  uint64_t capacity_;
  uint64_t first_;
  uint64_t next_;
  // Refreshed only when the reader reaches it. Writers modify its cache line with every event, and
  // each read forces them to fetch the line again.
  uint64_t known_tail_ = 0;
  uint64_t delivered_ = 0, overrun_ = 0, holes_ = 0, abandoned_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_RING_H_
