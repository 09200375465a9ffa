#include "collector/sessions/session_drain.h"

#include <algorithm>

namespace gmt::collector {
namespace {

constexpr uint64_t kPatience = kSecond;
constexpr uint64_t kPatienceAtEnd = 20 * kMillisecond;
constexpr size_t kMaxWatched = 4096;

}  // namespace

SessionDrain::Outcome SessionDrain::Next(TargetState target, session::Record* record,
                                         uint64_t* ticket, Lost* lost) {
  const Outcome outcome = reader_.Next(record, ticket, lost);
  if (outcome == Outcome::kRecord && pending_since_ns_ == 0) return outcome;
  if (outcome == Outcome::kPending) {
    if (!HasWaitedLongEnough(target)) return Outcome::kPending;
    if (target != TargetState::kDead) Watch(reader_.position());
    *lost = reader_.SkipPending();
    return Outcome::kLost;
  }
  if (outcome == Outcome::kLost && lost->why == session::RingReader::Loss::kAbandoned)
    Watch(lost->first);
  if (reader_.position() >= pending_tail_) pending_since_ns_ = 0;
  return outcome;
}

bool SessionDrain::HasWaitedLongEnough(TargetState target) {
  if (target == TargetState::kDead) return true;
  const uint64_t now = clock_->NowNs();
  if (pending_since_ns_ == 0) {
    pending_since_ns_ = now;
    pending_tail_ = reader_.tail();
  }
  const uint64_t waited = now - pending_since_ns_;
  if (target == TargetState::kEnding) return waited >= kPatienceAtEnd;
  return waited >= kPatience && reader_.tail() - reader_.position() >= reader_.capacity() / 2;
}

void SessionDrain::Watch(uint64_t ticket) {
  if (watched_.size() == kMaxWatched) watched_.erase(watched_.begin());
  watched_.push_back({ticket, reader_.CommitWord(ticket)});
}

bool SessionDrain::TakeDisturbed() {
  const uint64_t abandoned =
      control_->counters[session::kAbandoned].load(std::memory_order_acquire);
  bool disturbed = abandoned != abandoned_seen_;
  abandoned_seen_ = abandoned;
  const auto changed = [&](const Watched& w) {
    return reader_.CommitWord(w.ticket) != w.commit_word;
  };
  const auto rest = std::remove_if(watched_.begin(), watched_.end(), changed);
  disturbed |= rest != watched_.end();
  watched_.erase(rest, watched_.end());
  return disturbed;
}

}  // namespace gmt::collector
