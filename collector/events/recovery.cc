#include "collector/events/recovery.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "collector/events/event_translator.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

using session::LiveValue;

// The first effect of the held records on each place. An entry that they end themselves needs no
// correction.
class FirstTouches {
 public:
  explicit FirstTouches(const std::vector<HeldRecord>& held) {
    for (const auto& [record, ticket] : held) {
      const Effect effect = EffectOf(record.kind);
      if (record.kind == session::Kind::kContextReset) reset_.insert(record.context);
      if (effect != Effect::kNone) effects_.try_emplace({record.space, record.value}, effect);
    }
  }

  bool Ends(const Place& place, const LiveValue& live) const {
    const auto it = effects_.find(place);
    if (it != effects_.end()) return it->second == Effect::kReturns;
    return reset_.contains(live.context);
  }

 private:
  absl::flat_hash_map<Place, Effect> effects_;
  absl::flat_hash_set<uint8_t> reset_;
};

// Whether the entry is valid; the process may have overwritten its table.
bool IsSound(session::Space space, const LiveValue& live) {
  return space <= session::Space::kLast && live.memory <= session::Memory::kLast &&
         EffectOf(live.kind) == Effect::kAcquires;
}

bool Earlier(const std::pair<Place, LiveModelEntry>& a, const std::pair<Place, LiveModelEntry>& b) {
  return a.second.ticket < b.second.ticket;
}

}  // namespace

std::vector<HeldRecord> Recovery::Begin(uint64_t position) {
  std::vector<HeldRecord> released = GiveUp();
  active_ = true;
  first_held_ = position;
  return released;
}

void Recovery::Begin(const session::LiveTable& table) {
  truth_ = LiveModel();
  table.Scan([&](session::Space space, uint64_t value, const LiveValue& live) {
    if (IsSound(space, live)) truth_.Insert({space, value}, live);
  });
  scanned_ = true;
}

std::vector<HeldRecord> Recovery::GiveUp() {
  active_ = scanned_ = false;
  truth_ = LiveModel();
  return std::exchange(held_, {});
}

Corrections Recovery::Resolve(const LiveModel& model, std::vector<HeldRecord>* released) {
  for (const auto& [record, ticket] : held_) truth_.Apply(record, ticket);
  const FirstTouches touches(held_);
  Corrections corrections;
  // Returns the entry if it was live at the end of the gap: it is live and older than all held
  // records.
  const auto survivor = [&](const Place& place) {
    const LiveValue* live = truth_.Find(place);
    return live != nullptr && live->ticket < first_held_ ? live : nullptr;
  };
  for (const auto& [place, live] : model.entries()) {
    const LiveValue* now = survivor(place);
    const bool same = now != nullptr && now->ticket == live.ticket;
    if (!same && (now != nullptr || !touches.Ends(place, live)))
      corrections.ended.emplace_back(place, live);
  }
  for (const auto& [place, live] : truth_.entries()) {
    if (live.ticket >= first_held_) continue;
    const LiveValue* before = model.Find(place);
    if (before == nullptr || before->ticket != live.ticket) {
      corrections.appeared.emplace_back(place, live);
    } else if (before->roles != live.roles) {
      corrections.other_roles.emplace_back(place, live);
    }
  }
  std::sort(corrections.ended.begin(), corrections.ended.end(), Earlier);
  std::sort(corrections.appeared.begin(), corrections.appeared.end(), Earlier);
  std::sort(corrections.other_roles.begin(), corrections.other_roles.end(), Earlier);
  *released = GiveUp();
  return corrections;
}

}  // namespace gmt::collector
