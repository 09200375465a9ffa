#include "collector/recovering_drain.h"

#include <utility>

namespace gmt::collector {
namespace {

constexpr int kRecordsAtOnce = 65536;

}  // namespace

bool RecoveringDrain::DrainSome(TargetState state) {
  session::Record record;
  uint64_t ticket;
  session::RingReader::Lost lost;
  for (int n = 0; n < kRecordsAtOnce; ++n) {
    switch (drain_.Next(state, &record, &ticket, &lost)) {
      case SessionDrain::Outcome::kRecord:
        if (recovery_.active()) {
          recovery_.Hold(record, ticket);
          if (recovery_.Settled(drain_.position())) Advance(/*caught_up=*/true);
        } else {
          deps_.deliver(record, ticket);
        }
        break;
      case SessionDrain::Outcome::kLost:
        Lose(lost);
        break;
      case SessionDrain::Outcome::kEmpty:
      case SessionDrain::Outcome::kPending:
        Advance(/*caught_up=*/true);
        return false;
    }
  }
  Advance(/*caught_up=*/false);
  return true;
}

void RecoveringDrain::Lose(const session::RingReader::Lost& lost) {
  const std::vector<HeldRecord> held = recovery_.Begin(lost.last + 1);
  if (!held.empty()) WriteGaps(held.front().record.time_ns);
  Release(held);
  if (!gaps_.empty() && gaps_.back().why == lost.why && gaps_.back().last + 1 == lost.first) {
    gaps_.back().last = lost.last;
  } else {
    gaps_.push_back(lost);
  }
}

// Advances a recovery as far as possible. A reader that never catches up scans as soon as it has
// held a whole lap.
void RecoveringDrain::Advance(bool caught_up) {
  if (deps_.is_cut()) {
    GiveUp();
    return;
  }
  if (drain_.TakeDisturbed()) {
    if (!recovery_.active()) Recover();
    recovery_.ForgetScan();
  }
  if (!recovery_.active()) return;
  if (!recovery_.scanned()) {
    if (!caught_up && recovery_.held() < drain_.capacity()) return;
    recovery_.Scan(deps_.session.live(), [&] { return drain_.tail(); });
  }
  if (!recovery_.Settled(drain_.position())) return;
  if (deps_.is_cut()) {  // during the scan
    GiveUp();
    return;
  }
  std::vector<HeldRecord> held;
  const Corrections corrections = recovery_.Resolve(deps_.recorder->live(), &held);
  const uint64_t to_ns = held.empty() ? deps_.end_of_loss_ns() : held.front().record.time_ns;
  WriteGaps(to_ns);
  deps_.recorder->AddCorrections(corrections, to_ns);
  recovered_ = true;
  Release(held);
}

bool RecoveringDrain::GiveUp() {
  const std::vector<HeldRecord> held = recovery_.GiveUp();
  WriteGaps(held.empty() ? deps_.end_of_loss_ns() : held.front().record.time_ns);
  Release(held);
  return !held.empty();
}

void RecoveringDrain::WriteGaps(uint64_t to_ns) {
  for (const auto& lost : std::exchange(gaps_, {})) deps_.recorder->AddGap(lost, to_ns);
}

void RecoveringDrain::Release(const std::vector<HeldRecord>& held) {
  for (const auto& [record, ticket] : held) deps_.deliver(record, ticket);
}

Exactness RecoveringDrain::exactness() const {
  const auto count = [&](session::Counter counter) {
    return session::CountOf(deps_.session.control(), counter);
  };
  const std::pair<bool, const char*> reasons[] = {
      {deps_.is_cut(), "the session was truncated while it was read"},
      {recovery_.active() || !gaps_.empty(), "events are being lost faster than they can be read"},
      {count(session::kBeforeSession) != 0, "calls were made while the recording was being set up"},
      {recovered_ && count(session::kLiveFull) != 0,
       "events were lost and the table of live allocations was full"},
      {recovered_ && count(session::kUnrepresentable) != 0,
       "events were lost and the table of live allocations cannot hold some addresses"},
  };
  for (const auto& [holds, why] : reasons) {
    if (holds) return {why};
  }
  return {};
}

}  // namespace gmt::collector
