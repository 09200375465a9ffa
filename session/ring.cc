#include "session/ring.h"

namespace gmt::session {

RingReader::Outcome RingReader::Lose(uint64_t last, Loss why, Lost* lost) {
  *lost = {next_, last, why};
  const uint64_t count = last - next_ + 1;
  (why == Loss::kOverrun ? overrun_ : why == Loss::kAbandoned ? abandoned_ : holes_) += count;
  next_ = last + 1;
  return Outcome::kLost;
}

// Reports the loss of the record at next_ and of all others a whole lap behind the current tail.
RingReader::Outcome RingReader::LoseOverrun(Lost* lost) {
  known_tail_ = tail();
  const uint64_t first_there = known_tail_ > capacity_ ? known_tail_ - capacity_ : 0;
  return Lose(first_there > next_ ? first_there - 1 : next_, Loss::kOverrun, lost);
}

bool RingReader::WasAbandoned(uint64_t ticket) const {
  for (const std::atomic<uint64_t>& entry : control_->abandoned_tickets) {
    if (entry.load(std::memory_order_acquire) == ticket + 1) return true;
  }
  return false;
}

RingReader::Outcome RingReader::Next(Record* record, uint64_t* ticket, Lost* lost) {
  if (next_ >= known_tail_) {
    known_tail_ = tail();
    if (next_ >= known_tail_) return Outcome::kEmpty;
    if (known_tail_ - next_ > capacity_) return LoseOverrun(lost);
  }
  const Slot& slot = slots_[next_ & (capacity_ - 1)];
  const uint64_t before = slot.commit.load(std::memory_order_acquire);
  if (before != next_ + 1) {
    // Commit words never go back: a mark of a later lap means that our record was overwritten.
    if ((before & ~kBusy) > next_ + (before & kBusy ? 0 : 1)) return LoseOverrun(lost);
    if (WasAbandoned(next_)) return Lose(next_, Loss::kAbandoned, lost);
    return Outcome::kPending;
  }
  Words words;
#pragma GCC unroll 16  // keeps the words in registers
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.commit.load(std::memory_order_relaxed) != before) return LoseOverrun(lost);
  if (!Unpack(words, record)) return Lose(next_, Loss::kScribbled, lost);
  *ticket = next_++;
  ++delivered_;
  return Outcome::kRecord;
}

RingReader::Lost RingReader::SkipPending() {
  Lost lost;
  Lose(next_, Loss::kHole, &lost);
  return lost;
}

RingLosses RingReader::losses() const {
  RingLosses losses;
  const uint64_t written = tail();
  // A tail that moved back is corrupt.
  losses.written = (written < next_ ? next_ : written) - first_;
  losses.delivered = delivered_;
  losses.overrun = overrun_;
  losses.holes = holes_;
  losses.abandoned = abandoned_;
  losses.backlog = losses.written - (next_ - first_);
  return losses;
}

}  // namespace gmt::session
