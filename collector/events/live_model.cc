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

void LiveModel::Replace(const Place& place, LiveModelEntry* entry, bool is_new,
                        const LiveValue& live) {
  if (!is_new && observer_ != nullptr) observer_->OnEnded(place, *entry);
  static_cast<LiveValue&>(*entry) = live;
  entry->site = 0;
  if (observer_ != nullptr) observer_->OnBorn(place, entry);
}

LiveModelEntry* LiveModel::Insert(const Place& place, const LiveValue& live) {
  const auto [it, is_new] = entries_.try_emplace(place);
  Replace(place, &it->second, is_new, live);
  return &it->second;
}

void LiveModel::Erase(const Place& place) {
  const auto it = entries_.find(place);
  if (it == entries_.end()) return;
  if (observer_ != nullptr) observer_->OnEnded(place, it->second);
  entries_.erase(it);
}

LiveModelEntry* LiveModel::Find(const Place& place) {
  const auto it = entries_.find(place);
  return it == entries_.end() ? nullptr : &it->second;
}

const LiveModelEntry* LiveModel::Find(const Place& place) const {
  const auto it = entries_.find(place);
  return it == entries_.end() ? nullptr : &it->second;
}

LiveModel::Applied LiveModel::Apply(const session::Record& record, uint64_t ticket) {
  if (record.kind == Kind::kFreeDone) return FinishFree(record, ticket);
  if (record.kind == Kind::kContextReset) return ResetContext(record, ticket);
  if (record.space == session::Space::kNone) return {};
  switch (EffectOf(record.kind)) {
    case Effect::kAcquires:
      return Acquire(record, ticket);
    case Effect::kReturns:
      return Return(record, ticket);
    case Effect::kNone:
      return record.kind == Kind::kRole ? ApplyRole(record, ticket) : Applied{};
  }
  return {};
}

LiveModel::Applied LiveModel::Acquire(const session::Record& record, uint64_t ticket) {
  const Place place = {record.space, record.value};
  const auto [it, is_new] = entries_.try_emplace(place);
  LiveModelEntry& entry = it->second;
  if (!is_new && entry.ticket > ticket) return {};
  Replace(place, &entry, is_new, MakeLive(record, ticket));
  return {&entry.slot};
}

LiveModel::Applied LiveModel::Return(const session::Record& record, uint64_t ticket) {
  const auto it = entries_.find({record.space, record.value});
  if (it == entries_.end() || it->second.ticket > ticket) return {};
  ended_ = it->second;
  forgotten_.clear();
  if (HasResultLater(record)) AwaitResult(it->first, ended_);
  if (observer_ != nullptr) observer_->OnEnded(it->first, ended_);
  entries_.erase(it);
  return {&ended_.slot, &ended_, forgotten_};
}

void LiveModel::AwaitResult(const Place& place, const LiveModelEntry& freed) {
  if (being_freed_.size() >= kMaxBeingFreed) {
    forgotten_.assign(being_freed_.begin(), being_freed_.end());
    being_freed_.clear();
  }
  const auto [it, is_new] = being_freed_.try_emplace(place, freed);
  if (is_new) return;
  forgotten_.push_back(*it);
  it->second = freed;
}

LiveModel::Applied LiveModel::FinishFree(const session::Record& record, uint64_t ticket) {
  const Place place = {record.space, record.value};
  const auto it = being_freed_.find(place);
  if (it == being_freed_.end()) {
    unknown_undo_ |= record.result != 0 && !entries_.contains(place);
    return {};
  }
  ended_ = it->second;
  being_freed_.erase(it);
  if (record.result == 0) return {&ended_.slot, &ended_};
  const auto [at, is_new] = entries_.try_emplace(place);
  LiveModelEntry& entry = at->second;
  if (!is_new && entry.ticket > ticket) return {};
  if (!is_new && observer_ != nullptr) observer_->OnEnded(place, entry);
  entry = ended_;
  entry.ticket = ticket;
  if (observer_ != nullptr) observer_->OnRestored(place, &entry);
  return {&entry.slot, &ended_};
}

LiveModel::Applied LiveModel::ResetContext(const session::Record& record, uint64_t ticket) {
  forgotten_.clear();
  absl::erase_if(entries_, [&](const auto& entry) {
    const bool gone = entry.second.context == record.context && entry.second.ticket <= ticket;
    if (gone) forgotten_.push_back(entry);
    if (gone && observer_ != nullptr) observer_->OnEnded(entry.first, entry.second);
    return gone;
  });
  return {nullptr, nullptr, forgotten_};
}

// Each record holds all roles of the place, so the last one counts. A record older than the
// allocation belongs to a previous allocation.
LiveModel::Applied LiveModel::ApplyRole(const session::Record& record, uint64_t ticket) {
  LiveModelEntry* const entry = Find({record.space, record.value});
  if (entry == nullptr || entry->ticket > ticket) return {};
  entry->roles = static_cast<uint16_t>(record.size);
  return {&entry->slot};
}

bool LiveModel::TakeUnknownUndo() { return std::exchange(unknown_undo_, false); }

}  // namespace gmt::collector
