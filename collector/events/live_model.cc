#include "collector/events/live_model.h"

#include <utility>

#include "collector/events/event_translator.h"
#include "format/definitions_builder.h"

namespace gmt::collector {
namespace {

using session::Kind;
using session::LiveValue;
using session::Memory;

// There are at most as many frees in progress as threads. More entries mean that their results
// never came; then all are discarded.
constexpr size_t kMaxBeingFreed = 65536;

bool HasResultLater(const session::Record& record) {
  return record.memory != Memory::kBlock && record.memory != Memory::kRegion;
}

}  // namespace

LiveValue MakeLive(const session::Record& r, uint64_t ticket) {
  LiveValue live;
  live.ticket = ticket;
  live.size = r.size;
  live.stream = r.stream;
  live.time_ns = r.time_ns;
  live.stack = r.stack;
  live.forward_stack = r.forward_stack;
  live.thread = r.thread;
  live.kind = r.kind;
  live.memory = r.memory;
  live.device = r.device;
  live.context = r.context;
  live.api = r.api;
  live.layout = r.layout;
  return live;
}

session::Record MakeRecord(const Place& place, const LiveValue& live) {
  session::Record record;
  record.kind = live.kind;
  record.space = place.space;
  record.memory = live.memory;
  record.device = live.device;
  record.context = live.context;
  record.api = live.api;
  record.thread = live.thread;
  record.stack = live.stack;
  record.forward_stack = live.forward_stack;
  record.time_ns = live.time_ns;
  record.value = place.value;
  record.size = live.size;
  record.stream = live.stream;
  record.layout = live.layout;
  return record;
}

void LiveModel::Replace(const Place& place, LiveValue* entry, bool is_new, const LiveValue& live) {
  if (observer_ != nullptr) {
    if (!is_new) observer_->OnEnded(place, *entry);
    observer_->OnBorn(place, live);
  }
  *entry = live;
}

void LiveModel::Insert(const Place& place, const LiveValue& live) {
  const auto [it, is_new] = entries_.try_emplace(place);
  Replace(place, &it->second, is_new, live);
}

void LiveModel::Erase(const Place& place) {
  const auto it = entries_.find(place);
  if (it == entries_.end()) return;
  if (observer_ != nullptr) observer_->OnEnded(place, it->second);
  entries_.erase(it);
}

const LiveValue* LiveModel::Find(const Place& place) const {
  const auto it = entries_.find(place);
  return it == entries_.end() ? nullptr : &it->second;
}

std::optional<LiveValue> LiveModel::Apply(const session::Record& record, uint64_t ticket) {
  if (record.kind == Kind::kFreeDone) FinishFree(record, ticket);
  if (record.kind == Kind::kContextReset) ResetContext(record, ticket);
  if (record.space == session::Space::kNone) return std::nullopt;
  switch (EffectOf(record.kind)) {
    case Effect::kAcquires: {
      const Place place = {record.space, record.value};
      const auto [it, is_new] = entries_.try_emplace(place);
      if (is_new || it->second.ticket <= ticket)
        Replace(place, &it->second, is_new, MakeLive(record, ticket));
      return std::nullopt;
    }
    case Effect::kReturns:
      return Return(record, ticket);
    case Effect::kNone:
      if (record.kind == Kind::kRole) ApplyRole(record, ticket);
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<LiveValue> LiveModel::Return(const session::Record& record, uint64_t ticket) {
  const auto it = entries_.find({record.space, record.value});
  if (it == entries_.end() || it->second.ticket > ticket) return std::nullopt;
  const LiveValue ended = it->second;
  if (HasResultLater(record)) {
    if (being_freed_.size() >= kMaxBeingFreed) being_freed_.clear();
    being_freed_.insert_or_assign(it->first, ended);
  }
  if (observer_ != nullptr) observer_->OnEnded(it->first, ended);
  entries_.erase(it);
  return ended;
}

void LiveModel::FinishFree(const session::Record& record, uint64_t ticket) {
  const Place place = {record.space, record.value};
  const auto it = being_freed_.find(place);
  if (record.result == 0) {
    if (it != being_freed_.end()) being_freed_.erase(it);
    return;
  }
  if (it == being_freed_.end()) {
    unknown_undo_ |= !entries_.contains(place);
    return;
  }
  LiveValue restored = it->second;
  being_freed_.erase(it);
  restored.ticket = ticket;
  const auto [entry, is_new] = entries_.try_emplace(place);
  if (!is_new && entry->second.ticket > ticket) return;
  if (!is_new && observer_ != nullptr) observer_->OnEnded(place, entry->second);
  entry->second = restored;
  if (observer_ != nullptr) observer_->OnRestored(place, restored);
}

void LiveModel::ResetContext(const session::Record& record, uint64_t ticket) {
  absl::erase_if(entries_, [&](const auto& entry) {
    const bool gone = entry.second.context == record.context && entry.second.ticket <= ticket;
    if (gone && observer_ != nullptr) observer_->OnEnded(entry.first, entry.second);
    return gone;
  });
}

// Each record holds all roles of the place, so the last one counts. A record older than the
// allocation belongs to a previous allocation.
void LiveModel::ApplyRole(const session::Record& record, uint64_t ticket) {
  const auto it = entries_.find({record.space, record.value});
  if (it != entries_.end() && it->second.ticket <= ticket)
    it->second.roles = static_cast<uint16_t>(record.size);
}

void LiveModel::SetRoles(const Place& place, uint16_t roles) {
  const auto it = entries_.find(place);
  if (it != entries_.end()) it->second.roles = roles;
}

bool LiveModel::TakeUnknownUndo() { return std::exchange(unknown_undo_, false); }

}  // namespace gmt::collector
