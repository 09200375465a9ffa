#include "format/event_columns.h"

#include "absl/strings/str_cat.h"
#include "format/columns.h"

// The columns that are members of Event under the same name and written as they are; addresses and
// what a free has in common with its allocation are not among them.
// clang-format off
#define GMT_ACQUISITION_COLUMNS(COLUMN) \
  COLUMN(heap) COLUMN(memory) COLUMN(device) COLUMN(context) COLUMN(size) COLUMN(stack) \
  COLUMN(stream) COLUMN(api) COLUMN(duration_ns) COLUMN(result) COLUMN(requested) COLUMN(pool) \
  COLUMN(forward_stack) COLUMN(total_allocated) COLUMN(total_reserved) COLUMN(handle) \
  COLUMN(offset) COLUMN(flags) COLUMN(name) COLUMN(scope)
#define GMT_RETURN_COLUMNS(COLUMN) \
  COLUMN(stack) COLUMN(api) COLUMN(duration_ns) COLUMN(result) COLUMN(total_allocated) \
  COLUMN(total_reserved)
#define GMT_RETURN_SHARED_COLUMNS(COLUMN) \
  COLUMN(heap, kSameHeap) COLUMN(memory, kSameMemory) COLUMN(device, kSameDevice) \
  COLUMN(context, kSameContext) COLUMN(address, kSameAddress) COLUMN(size, kSameSize) \
  COLUMN(stream, kSameStream) COLUMN(pool, kSamePool)
#define GMT_ACTIVITY_COLUMNS(COLUMN) \
  COLUMN(device) COLUMN(context) COLUMN(stream) COLUMN(object) COLUMN(action) COLUMN(api) \
  COLUMN(duration_ns) COLUMN(result) COLUMN(stack) COLUMN(priority) COLUMN(flags) COLUMN(heap) \
  COLUMN(value) COLUMN(name)
#define GMT_NOTE_COLUMNS(COLUMN) \
  COLUMN(name) COLUMN(index) COLUMN(domain) COLUMN(range) COLUMN(color) COLUMN(stack) \
  COLUMN(text)
// clang-format on

namespace gmt::format {
namespace {

// ---- Encoding -----------------------------------------------------------------------------------

#define GMT_PUT(name) columns->add_##name(event.name);
#define GMT_TRIM(name) TrimColumn(columns->mutable_##name());

void PutAcquisition(const Event& event, int64_t* last_address, gmt::Acquisitions* columns) {
  GMT_ACQUISITION_COLUMNS(GMT_PUT)
  const auto address = static_cast<int64_t>(event.address);
  columns->add_address(SubtractWrapping(address, *last_address));
  *last_address = address;
}

void PutReturn(const Event& event, const AcquisitionHistory& history, gmt::Returns* columns) {
  GMT_RETURN_COLUMNS(GMT_PUT)
  const uint64_t distance = history.DistanceTo(event);
  const Acquired* acquired = history.Find(distance);
  uint32_t same = 0;
#define GMT_PUT_UNLESS_SAME(name, bit)                       \
  if (acquired != nullptr && acquired->name == event.name) { \
    same |= bit;                                             \
    columns->add_##name({});                                 \
  } else {                                                   \
    columns->add_##name(event.name);                         \
  }
  GMT_RETURN_SHARED_COLUMNS(GMT_PUT_UNLESS_SAME)
#undef GMT_PUT_UNLESS_SAME
  columns->add_distance(acquired == nullptr ? 0 : distance);
  columns->add_same(same);
}

void PutActivity(const Event& event, gmt::Activities* columns) { GMT_ACTIVITY_COLUMNS(GMT_PUT) }

void PutNote(const Event& event, gmt::Notes* columns) { GMT_NOTE_COLUMNS(GMT_PUT) }

void Trim(gmt::Acquisitions* columns) {
  GMT_ACQUISITION_COLUMNS(GMT_TRIM)
  GMT_TRIM(address)
}

void Trim(gmt::Returns* columns) {
#define GMT_TRIM_SHARED(name, bit) GMT_TRIM(name)
  GMT_RETURN_COLUMNS(GMT_TRIM)
  GMT_RETURN_SHARED_COLUMNS(GMT_TRIM_SHARED)
#undef GMT_TRIM_SHARED
  GMT_TRIM(distance)
  GMT_TRIM(same)
}

void Trim(gmt::Activities* columns) { GMT_ACTIVITY_COLUMNS(GMT_TRIM) }

void Trim(gmt::Notes* columns) { GMT_NOTE_COLUMNS(GMT_TRIM) }

void Trim(gmt::Events* columns) {
  GMT_TRIM(kind)
  GMT_TRIM(present)
  GMT_TRIM(t_ns)
  GMT_TRIM(thread)
  if (columns->has_acquisitions()) Trim(columns->mutable_acquisitions());
  if (columns->has_returns()) Trim(columns->mutable_returns());
  if (columns->has_activities()) Trim(columns->mutable_activities());
  if (columns->has_notes()) Trim(columns->mutable_notes());
}

#undef GMT_TRIM
#undef GMT_PUT

// ---- Decoding -----------------------------------------------------------------------------------

#define GMT_TAKE(name) event->name = ColumnAt(columns.name(), row);
// Enumerations are columns of int.
#define GMT_TAKE_CAST(name) \
  event->name = static_cast<decltype(event->name)>(ColumnAt(columns.name(), row));

void TakeAcquisition(const gmt::Acquisitions& columns, int row, int64_t* last_address,
                     Event* event) {
  GMT_ACQUISITION_COLUMNS(GMT_TAKE_CAST)
  *last_address = AddWrapping(*last_address, ColumnAt(columns.address(), row));
  event->address = static_cast<uint64_t>(*last_address);
}

void TakeReturn(const gmt::Returns& columns, int row, const AcquisitionHistory& history,
                Returns returns, Event* event) {
  GMT_RETURN_COLUMNS(GMT_TAKE)
  const uint32_t same = ColumnAt(columns.same(), row);
  const Acquired* acquired = history.Find(ColumnAt(columns.distance(), row));
  static const Acquired kLost;
  const Acquired& source = acquired == nullptr ? kLost : *acquired;
#define GMT_TAKE_UNLESS_SAME(name, bit) \
  if ((same & bit) != 0) {              \
    event->name = source.name;          \
  } else {                              \
    GMT_TAKE_CAST(name)                 \
  }
  GMT_RETURN_SHARED_COLUMNS(GMT_TAKE_UNLESS_SAME)
#undef GMT_TAKE_UNLESS_SAME
  if (acquired == nullptr && (same & kSameAddress) != 0) {
    event->present &= ~uint64_t{kHasAddress | kHasSize};  // they stood in a chunk that was lost
  }
  if (acquired != nullptr && returns == Returns::kCompleted) CompleteReturn(*acquired, event);
}

void TakeActivity(const gmt::Activities& columns, int row, Event* event) {
  GMT_ACTIVITY_COLUMNS(GMT_TAKE)
}

void TakeNote(const gmt::Notes& columns, int row, Event* event) { GMT_NOTE_COLUMNS(GMT_TAKE) }

#undef GMT_TAKE
#undef GMT_TAKE_CAST

// How far the rows of each family are read.
struct Cursor {
  int acquisition = 0, returned = 0, activity = 0, note = 0, sample = 0, snapshot = 0, gap = 0,
      other = 0;
  int64_t address = 0;
};

// Details are the batch's own; a row without one is damage.
template <typename Source, typename Target>
bool TakeDetail(const Source& source, int* row, Target* target, Event* event) {
  if (*row >= source.size()) return false;
  event->detail = static_cast<uint32_t>(target->size());
  target->push_back(source.Get((*row)++));
  return true;
}

bool TakeFamily(const gmt::Events& columns, Returns returns, AcquisitionHistory* history,
                Cursor* cursor, Event* event, EventBatch* batch) {
  switch (FamilyOf(event->kind)) {
    case Family::kAcquisition:
      TakeAcquisition(columns.acquisitions(), cursor->acquisition++, &cursor->address, event);
      history->Add(*event);
      return true;
    case Family::kReturn:
      TakeReturn(columns.returns(), cursor->returned++, *history, returns, event);
      return true;
    case Family::kActivity:
      TakeActivity(columns.activities(), cursor->activity++, event);
      return true;
    case Family::kNote:
      TakeNote(columns.notes(), cursor->note++, event);
      return true;
    case Family::kSample:
      return TakeDetail(columns.samples(), &cursor->sample, &batch->samples, event);
    case Family::kSnapshot:
      return TakeDetail(columns.snapshots(), &cursor->snapshot, &batch->snapshots, event);
    case Family::kGap:
      return TakeDetail(columns.gaps(), &cursor->gap, &batch->gaps, event);
    case Family::kOther:
      // A kind of a later version has columns of its own, which this version does not know.
      return event->kind != OTHER_KIND ||
             TakeDetail(columns.others(), &cursor->other, &batch->others, event);
  }
  return false;
}

}  // namespace

gmt::Events EncodeEvents(const EventBatch& batch, int64_t base_t_ns, AcquisitionHistory* history) {
  gmt::Events columns;
  columns.set_count(static_cast<uint32_t>(batch.events.size()));
  columns.set_first_acquisition(history->rows());
  int64_t last_t_ns = base_t_ns, last_address = 0;
  for (const Event& event : batch.events) {
    columns.add_kind(event.kind);
    columns.add_present(event.present);
    columns.add_t_ns(SubtractWrapping(event.t_ns, last_t_ns));
    columns.add_thread(event.thread);
    last_t_ns = event.t_ns;
    switch (FamilyOf(event.kind)) {
      case Family::kAcquisition:
        PutAcquisition(event, &last_address, columns.mutable_acquisitions());
        history->Add(event);
        break;
      case Family::kReturn:
        PutReturn(event, *history, columns.mutable_returns());
        break;
      case Family::kActivity:
        PutActivity(event, columns.mutable_activities());
        break;
      case Family::kNote:
        PutNote(event, columns.mutable_notes());
        break;
      case Family::kSample:
        *columns.add_samples() = batch.samples[event.detail];
        break;
      case Family::kSnapshot:
        *columns.add_snapshots() = batch.snapshots[event.detail];
        break;
      case Family::kGap:
        *columns.add_gaps() = batch.gaps[event.detail];
        break;
      case Family::kOther:
        if (event.kind == OTHER_KIND) columns.add_others(batch.others[event.detail]);
        break;
    }
  }
  Trim(&columns);
  return columns;
}

absl::Status DecodeEvents(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
                          AcquisitionHistory* history, EventBatch* batch) {
  if (columns.count() > kMaxEventsOfChunk) {
    return absl::OutOfRangeError(absl::StrCat("a chunk claims ", columns.count(), " events"));
  }
  history->ContinueAt(columns.first_acquisition());
  batch->events.reserve(batch->events.size() + columns.count());
  Cursor cursor;
  int64_t t_ns = base_t_ns;
  for (int row = 0; row < static_cast<int>(columns.count()); ++row) {
    Event& event = batch->events.emplace_back();
    event.kind = static_cast<Kind>(ColumnAt(columns.kind(), row));
    event.present = ColumnAt(columns.present(), row);
    t_ns = AddWrapping(t_ns, ColumnAt(columns.t_ns(), row));
    event.t_ns = t_ns;
    event.thread = ColumnAt(columns.thread(), row);
    if (!TakeFamily(columns, returns, history, &cursor, &event, batch)) {
      batch->events.pop_back();
      return absl::DataLossError(absl::StrCat("event ", row, " of a chunk has no details"));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmt::format
