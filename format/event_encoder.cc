#include "format/event_encoder.h"

#include <algorithm>

namespace gmt::format {

EventEncoder::EventEncoder(AcquisitionHistory* history) : history_(history) { Clear(); }

void EventEncoder::Clear() {
  counts_.Clear();
  // Clear each message separately, because Clear() of the outer one would free their memory.
  columns_.clear_kind();
  columns_.clear_present_change();
  columns_.clear_t_width();
  columns_.clear_t_bits();
  columns_.clear_begin_t_ns();
  columns_.clear_thread();
  columns_.clear_samples();
  columns_.clear_snapshots();
  columns_.clear_gaps();
  columns_.clear_others();
  columns_.mutable_acquisitions()->Clear();
  columns_.mutable_returns()->Clear();
  columns_.mutable_activities()->Clear();
  columns_.mutable_notes()->Clear();
  columns_.mutable_roles()->Clear();
  event_ = {&columns_};
  times_ = {columns_.mutable_t_width(), columns_.mutable_t_bits()};
  acquisition_ = {columns_.mutable_acquisitions()};
  return_ = {columns_.mutable_returns()};
  activity_ = {columns_.mutable_activities()};
  note_ = {columns_.mutable_notes()};
  role_ = {columns_.mutable_roles()};
  columns_.set_first_acquisition(history_->rows());
  events_ = acquisitions_ = new_addresses_ = returns_ = activities_ = notes_ = roles_ = 0;
  present_.fill(0);
  addresses_.Clear();
  previous_address_ = 0;
  previous_role_row_ = history_->rows();
  previous_thread_ = 0;
  totals_.Clear();
  nodes_.Clear();
}

void EventEncoder::AddRow(const Event& event) {
  const int row = events_++;
  if (row == 0) {
    begin_t_ns_ = previous_t_ns_ = first_t_ns_ = last_t_ns_ = event.t_ns;
  }
  first_t_ns_ = std::min(first_t_ns_, event.t_ns);
  last_t_ns_ = std::max(last_t_ns_, event.t_ns);
  event_.kind.Set(row, event.kind);
  if (event.kind != ROLE) {
    uint64_t& last = present_[KindOfPresent(event.kind)];
    event_.present_change.Set(row, event.present ^ std::exchange(last, event.present));
  }
  event_.thread.Set(row, static_cast<int32_t>(event.thread - previous_thread_));
  previous_thread_ = event.thread;
  times_.Add(SubtractWrapping(event.t_ns, previous_t_ns_));
  previous_t_ns_ = event.t_ns;
  const Family family = FamilyOf(event.kind);
  if (family != Family::kAcquisition && family != Family::kReturn) counts_.Add(event.kind, 0, 0);
}

void EventEncoder::Add(const Event& event, AcquisitionSlot* slot) {
  AcquisitionSlot unknown = kNoAcquisitionSlot;
  if (slot == nullptr) slot = &unknown;
  AddRow(event);
  switch (FamilyOf(event.kind)) {
    case Family::kAcquisition:
      return AddAcquisition(event, slot);
    case Family::kReturn:
      return AddReturn(event, *slot);
    case Family::kActivity:
      return AddActivity(event);
    case Family::kNote:
      return AddNote(event);
    case Family::kRole:
      return AddRole(event, *slot);
    default:
      return;
  }
}

void EventEncoder::Add(const Event& event, const Sample& sample) {
  AddRow(event);
  *columns_.add_samples() = sample;
}

void EventEncoder::Add(const Event& event, const SnapshotTaken& snapshot) {
  AddRow(event);
  *columns_.add_snapshots() = snapshot;
}

void EventEncoder::Add(const Event& event, const Gap& gap) {
  AddRow(event);
  *columns_.add_gaps() = gap;
}

void EventEncoder::Add(const Event& event, const std::string& other) {
  AddRow(event);
  columns_.add_others(other);
}

void EventEncoder::AddAcquisition(const Event& event, AcquisitionSlot* slot) {
  const int row = acquisitions_++;
  counts_.Add(event.kind, event.heap, event.result);
#define GMT_ADD(name) acquisition_.name.Set(row, event.name);
  GMT_ACQUISITION_COLUMNS(GMT_ADD)
#undef GMT_ADD
  const auto address = static_cast<int64_t>(event.address);
  const uint32_t from = addresses_.Add(event.address, event.size);
  acquisition_.address_from.Set(row, from);
  if (from == 0)
    acquisition_.address.Set(new_addresses_++, SubtractWrapping(address, previous_address_));
  previous_address_ = address;
  const auto totals = totals_.Encode(event, nullptr);
  acquisition_.total_allocated.Set(row, totals.allocated);
  acquisition_.total_reserved.Set(row, totals.reserved);
  *slot = history_->Add(event, *slot);
}

// Adds to a column that a row shares with its acquisition: writes only values that differ.
#define GMT_ADD_UNLESS_SAME(name, bit)                       \
  if (acquired != nullptr && acquired->name == event.name) { \
    same |= bit;                                             \
    columns.name.Set(row, {});                               \
  } else {                                                   \
    columns.name.Set(row, event.name);                       \
  }

void EventEncoder::AddReturn(const Event& event, AcquisitionSlot last) {
  const int row = returns_++;
#define GMT_ADD(name) return_.name.Set(row, event.name);
  GMT_RETURN_COLUMNS(GMT_ADD)
#undef GMT_ADD
  const Acquired* acquired = history_->AcquisitionOf(event, last);
  const bool has_heap = event.heap != 0 || acquired == nullptr;
  counts_.Add(event.kind, has_heap ? event.heap : acquired->heap, event.result);
  uint32_t same = 0;
  auto& columns = return_;
  GMT_RETURN_SHARED_COLUMNS(GMT_ADD_UNLESS_SAME)
  return_.distance.Set(row, history_->DistanceOf(acquired));
  return_.same.Set(row, same);
  const auto totals = totals_.Encode(event, acquired);
  return_.total_allocated.Set(row, totals.allocated);
  return_.total_reserved.Set(row, totals.reserved);
  history_->Ended(event, acquired);
}

void EventEncoder::AddActivity(const Event& event) {
  const int row = activities_++;
#define GMT_ADD(name) activity_.name.Set(row, event.name);
  GMT_ACTIVITY_COLUMNS(GMT_ADD)
#undef GMT_ADD
}

void EventEncoder::AddNote(const Event& event) {
  const int row = notes_++;
#define GMT_ADD(name) note_.name.Set(row, event.name);
  GMT_NOTE_COLUMNS(GMT_ADD)
#undef GMT_ADD
}

void EventEncoder::AddRole(const Event& event, AcquisitionSlot last) {
  const int row = roles_++;
#define GMT_ADD(name) role_.name.Set(row, event.name);
  GMT_ROLE_COLUMNS(GMT_ADD)
#undef GMT_ADD
  const Acquired* acquired = history_->AcquisitionOf(event, last);
  uint32_t same = 0;
  auto& columns = role_;
  GMT_ROLE_SHARED_COLUMNS(GMT_ADD_UNLESS_SAME)
  role_.same.Set(row, same);
  const uint64_t saved = acquired != nullptr ? acquired->row : previous_role_row_;
  role_.row.Set(row, static_cast<int64_t>(saved - previous_role_row_));
  previous_role_row_ = saved;
  role_.name.Set(row, nodes_.Encode(event.forward_stack, event.name));
}

#undef GMT_ADD_UNLESS_SAME

gmt::Events& EventEncoder::Finish(int64_t base_t_ns) {
  times_.Finish();
  columns_.set_count(events());
  columns_.set_begin_t_ns(SubtractWrapping(begin_t_ns_, base_t_ns));
  if (acquisitions_ == 0) columns_.clear_acquisitions();
  if (returns_ == 0) columns_.clear_returns();
  if (activities_ == 0) columns_.clear_activities();
  if (notes_ == 0) columns_.clear_notes();
  if (roles_ == 0) columns_.clear_roles();
  return columns_;
}

gmt::Events EncodeEvents(const EventBatch& batch, int64_t base_t_ns, AcquisitionHistory* history) {
  EventEncoder encoder(history);
  for (const Event& event : batch.events) {
    switch (FamilyOf(event.kind)) {
      case Family::kSample:
        encoder.Add(event, batch.samples[event.detail]);
        break;
      case Family::kSnapshot:
        encoder.Add(event, batch.snapshots[event.detail]);
        break;
      case Family::kGap:
        encoder.Add(event, batch.gaps[event.detail]);
        break;
      case Family::kOther:
        if (event.kind == OTHER_KIND) {
          encoder.Add(event, batch.others[event.detail]);
          break;
        }
        [[fallthrough]];
      default:
        encoder.Add(event);
    }
  }
  return std::move(encoder.Finish(base_t_ns));
}

}  // namespace gmt::format
