#include "format/event_columns.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "format/columns.h"
#include "format/event_fields.h"
#include "format/event_times.h"
#include "format/expected_nodes.h"
#include "format/expected_totals.h"
#include "format/recurring_addresses.h"

namespace gmt::format {

// The values in format/kinds.h equal those in gmt.proto.
#define GMT_SAME(name) static_assert(static_cast<int>(name) == static_cast<int>(Events::name));
// clang-format off
GMT_SAME(KIND_UNSPECIFIED) GMT_SAME(ALLOC) GMT_SAME(FREE) GMT_SAME(FREE_DONE)
GMT_SAME(ALLOC_FAILED) GMT_SAME(RESERVE) GMT_SAME(UNRESERVE) GMT_SAME(CREATE) GMT_SAME(RELEASE)
GMT_SAME(MAP) GMT_SAME(UNMAP) GMT_SAME(IMPORT) GMT_SAME(UNIMPORT) GMT_SAME(REGISTER)
GMT_SAME(UNREGISTER) GMT_SAME(CONTEXT_CREATE) GMT_SAME(CONTEXT_RESET) GMT_SAME(STREAM)
GMT_SAME(EVENT_RECORD) GMT_SAME(EVENT_WAIT) GMT_SAME(SYNC) GMT_SAME(MARK) GMT_SAME(RANGE_BEGIN)
GMT_SAME(RANGE_END) GMT_SAME(THREAD) GMT_SAME(SAMPLE) GMT_SAME(SNAPSHOT_TAKEN) GMT_SAME(GAP)
GMT_SAME(OTHER_KIND) GMT_SAME(POOL_ACTION) GMT_SAME(GRAPH_ACTION) GMT_SAME(MODULE_ACTION)
GMT_SAME(LIMIT_ACTION) GMT_SAME(ALLOCATOR_ACTION) GMT_SAME(COPY) GMT_SAME(SOURCE_CHANGE)
GMT_SAME(DEVICE_NAME) GMT_SAME(WITNESS) GMT_SAME(ROLE) GMT_SAME(STACK_LINE)
GMT_SAME(MEMORY_UNSPECIFIED) GMT_SAME(DEVICE) GMT_SAME(MANAGED) GMT_SAME(PINNED)
GMT_SAME(REGISTERED) GMT_SAME(POOL) GMT_SAME(VMM) GMT_SAME(ARRAY) GMT_SAME(MIPMAPPED)
GMT_SAME(IPC) GMT_SAME(EXTERNAL) GMT_SAME(GRAPH) GMT_SAME(GRAPHICS) GMT_SAME(MULTICAST)
GMT_SAME(BLOCK) GMT_SAME(REGION)
// clang-format on
#undef GMT_SAME

                                                    static_assert(Events::Kind_ARRAYSIZE == 40 &&
                                                                  Events::Memory_ARRAYSIZE == 16);
namespace {

// ---- Decoding -----------------------------------------------------------------------------------

#define GMT_TAKE(name) event->name = ColumnAt(columns.name(), row);
// Columns of enumerations are columns of int.
#define GMT_TAKE_CAST(name) \
  event->name = static_cast<decltype(event->name)>(ColumnAt(columns.name(), row));

// The addresses of acquisitions.
struct Addresses {
  RecurringAddressReader known;
  int row = 0;  // the next one in the column `address`
  uint64_t last = 0;

  // Returns false if a row refers to one that does not exist.
  bool Take(const gmt::Acquisitions& columns, uint32_t from, Event* event) {
    if (from == 0) {
      last += static_cast<uint64_t>(ColumnAt(columns.address(), row++));
    } else if (!known.Find(from, &last)) {
      return false;
    }
    event->address = last;
    known.Add(last, event->size);
    return true;
  }
};

bool TakeAcquisition(const gmt::Acquisitions& columns, int row, Addresses* addresses,
                     ExpectedTotals* totals, Event* event) {
  GMT_ACQUISITION_COLUMNS(GMT_TAKE_CAST)
  if (!addresses->Take(columns, ColumnAt(columns.address_from(), row), event)) return false;
  totals->Decode(
      {ColumnAt(columns.total_allocated(), row), ColumnAt(columns.total_reserved(), row)}, nullptr,
      event);
  return true;
}

// Fields that an event shares with its acquisition are taken from that.
#define GMT_TAKE_UNLESS_SAME(name, bit) \
  if ((same & bit) != 0) {              \
    event->name = source.name;          \
  } else {                              \
    GMT_TAKE_CAST(name)                 \
  }

// Returns the source of shared fields. If the acquisition was in a lost chunk, returns an empty
// one and marks the fields as not present.
const Acquired& SourceOf(const Acquired* acquired, uint32_t same, Event* event) {
  static const Acquired kLost;
  if (acquired != nullptr) return *acquired;
  if ((same & kSameAddress) != 0) event->present &= ~uint64_t{kHasAddress | kHasSize};
  return kLost;
}

void TakeReturn(const gmt::Returns& columns, int row, AcquisitionHistory* history, Returns returns,
                ExpectedTotals* totals, Event* event) {
  GMT_RETURN_COLUMNS(GMT_TAKE)
  const uint32_t same = ColumnAt(columns.same(), row);
  const uint64_t distance = ColumnAt(columns.distance(), row);
  const Acquired* acquired = history->Find(distance);
  const Acquired& source = SourceOf(acquired, same, event);
  GMT_RETURN_SHARED_COLUMNS(GMT_TAKE_UNLESS_SAME)
  if (acquired == nullptr && same != 0) totals->Lose();
  totals->Decode(
      {ColumnAt(columns.total_allocated(), row), ColumnAt(columns.total_reserved(), row)}, acquired,
      event);
  if (acquired != nullptr && returns == Returns::kCompleted) CompleteReturn(*acquired, event);
  history->Ended(*event, distance);
}

void TakeActivity(const gmt::Activities& columns, int row, Event* event) {
  GMT_ACTIVITY_COLUMNS(GMT_TAKE_CAST)
}

void TakeNote(const gmt::Notes& columns, int row, Event* event) { GMT_NOTE_COLUMNS(GMT_TAKE) }

void TakeRole(const gmt::Roles& columns, int row, uint64_t* last_row, ExpectedNodes* nodes,
              const AcquisitionHistory& history, Returns returns, Event* event) {
  GMT_ROLE_COLUMNS(GMT_TAKE)
  const uint32_t same = ColumnAt(columns.same(), row);
  *last_row += static_cast<uint64_t>(ColumnAt(columns.row(), row));
  const Acquired* acquired = same == 0 ? nullptr : history.Find(history.rows() - *last_row);
  const Acquired& source = SourceOf(acquired, same, event);
  GMT_ROLE_SHARED_COLUMNS(GMT_TAKE_UNLESS_SAME)
  event->name = nodes->Decode(event->forward_stack, ColumnAt(columns.name(), row));
  if (acquired != nullptr && returns == Returns::kCompleted) CompleteRole(*acquired, event);
}

#undef GMT_TAKE
#undef GMT_TAKE_CAST
#undef GMT_TAKE_UNLESS_SAME

// Number of rows read so far, by family.
struct Cursor {
  int acquisition = 0, returned = 0, activity = 0, note = 0, sample = 0, snapshot = 0, gap = 0,
      other = 0, role = 0;
  Addresses addresses;
  uint64_t role_row = 0;  // row of acquisitions
  ExpectedTotals totals;
  ExpectedNodes nodes;
};

// Takes a detail from the columns. A row without a detail is damage.
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
      if (!TakeAcquisition(columns.acquisitions(), cursor->acquisition++, &cursor->addresses,
                           &cursor->totals, event)) {
        return false;
      }
      history->Add(*event);
      return true;
    case Family::kReturn:
      TakeReturn(columns.returns(), cursor->returned++, history, returns, &cursor->totals, event);
      return true;
    case Family::kActivity:
      TakeActivity(columns.activities(), cursor->activity++, event);
      return true;
    case Family::kNote:
      TakeNote(columns.notes(), cursor->note++, event);
      return true;
    case Family::kRole:
      TakeRole(columns.roles(), cursor->role++, &cursor->role_row, &cursor->nodes, *history,
               returns, event);
      return true;
    case Family::kSample:
      return TakeDetail(columns.samples(), &cursor->sample, &batch->samples, event);
    case Family::kSnapshot:
      return TakeDetail(columns.snapshots(), &cursor->snapshot, &batch->snapshots, event);
    case Family::kGap:
      return TakeDetail(columns.gaps(), &cursor->gap, &batch->gaps, event);
    case Family::kOther:
      // A kind of a later version has columns that this version does not know.
      return event->kind != OTHER_KIND ||
             TakeDetail(columns.others(), &cursor->other, &batch->others, event);
  }
  return false;
}

// Takes `present` and times, which a writer of readers before version 2 stored differently.
class HeadTaker {
 public:
  HeadTaker(const gmt::Events& columns, int64_t base_t_ns)
      : columns_(columns),
        times_(columns.t_width(), columns.t_bits()),
        has_widths_(!columns.t_width().empty()),
        has_changes_(columns.present_change_size() > 0),
        t_ns_(AddWrapping(base_t_ns, columns.begin_t_ns())) {}

  // Returns false if the event has no time.
  bool Take(int row, Event* event) {
    if (!has_changes_) {
      event->present = ColumnAt(columns_.present(), row);
    } else if (event->kind != ROLE) {
      event->present = present_[KindOfPresent(event->kind)] ^=
          ColumnAt(columns_.present_change(), row);
    }
    int64_t difference = 0;
    if (!has_widths_) {
      difference = ColumnAt(columns_.t_ns(), row);
    } else if (!times_.Next(&difference)) {
      return false;
    }
    event->t_ns = t_ns_ = AddWrapping(t_ns_, difference);
    return true;
  }

 private:
  const gmt::Events& columns_;
  EventTimeReader times_;
  const bool has_widths_, has_changes_;
  std::array<uint64_t, kKindsOfPresent> present_{};
  int64_t t_ns_;
};

}  // namespace

absl::Status DecodeEvents(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
                          AcquisitionHistory* history, EventBatch* batch) {
  if (columns.count() > kMaxEventsOfChunk) {
    return absl::OutOfRangeError(absl::StrCat("a chunk claims ", columns.count(), " events"));
  }
  history->ContinueAt(columns.first_acquisition());
  batch->events.reserve(batch->events.size() + columns.count());
  Cursor cursor;
  cursor.role_row = columns.first_acquisition();
  HeadTaker head(columns, base_t_ns);
  uint32_t thread = 0;
  for (int row = 0; row < static_cast<int>(columns.count()); ++row) {
    Event& event = batch->events.emplace_back();
    event.kind = static_cast<Kind>(ColumnAt(columns.kind(), row));
    const bool has_head = head.Take(row, &event);
    thread += static_cast<uint32_t>(ColumnAt(columns.thread(), row));
    event.thread = thread;
    if (!has_head || !TakeFamily(columns, returns, history, &cursor, &event, batch)) {
      batch->events.pop_back();
      return absl::DataLossError(absl::StrCat("event ", row, " of a chunk has no details"));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmt::format
