#include "format/event_columns.h"

#include <array>
#include <cstring>
#include <vector>

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

// Reads the rows of a family. A row is a copy of the previous one, with the next values of those
// columns that still have any; most columns of a chunk have no value or one.
class FamilyReader {
 public:
  FamilyReader() = default;
  FamilyReader(const FamilyReader&) = delete;
  FamilyReader& operator=(const FamilyReader&) = delete;

  template <typename Value, typename Field>
  void AddColumn(const google::protobuf::RepeatedField<Value>& column, Field Event::*field) {
    static_assert(sizeof(Value) == sizeof(Field) && (sizeof(Value) == 4 || sizeof(Value) == 8));
    if (column.size() == 1) row_.*field = static_cast<Field>(column.Get(0));
    if (column.size() <= 1) return;
    columns_.push_back({reinterpret_cast<const char*>(column.data()),
                        reinterpret_cast<const char*>(column.data() + column.size()),
                        reinterpret_cast<char*>(&(row_.*field)) - Bytes(&row_), sizeof(Value)});
  }

  // Appends the next row. A value is written to the row and to its copy: a copy of what has just
  // been written would have to wait for that.
  Event& AppendNext(std::vector<Event>* events) {
    Event& next = events->emplace_back(row_);
    for (auto column = columns_.begin(); column != columns_.end();) {
      if (column->next == column->end) {
        *column = columns_.back();
        columns_.pop_back();
        continue;
      }
      if (column->width == 8) {
        Set<8>(*column, &next);
      } else {
        Set<4>(*column, &next);
      }
      column->next += column->width;
      ++column;
    }
    return next;
  }

 private:
  struct Column {
    const char* next;
    const char* end;
    std::ptrdiff_t field;  // its place in an Event, in bytes
    size_t width;
  };

  static char* Bytes(Event* event) { return reinterpret_cast<char*>(event); }
  template <size_t kWidth>
  void Set(const Column& column, Event* next) {
    std::memcpy(Bytes(&row_) + column.field, column.next, kWidth);
    std::memcpy(Bytes(next) + column.field, column.next, kWidth);
  }

  Event row_;
  std::vector<Column> columns_;  // those with further values
};

struct TotalsReader {
  ColumnReader<int64_t> allocated, reserved;

  ExpectedTotals::Differences Next() { return {allocated.Next(), reserved.Next()}; }
};

class EventDecoder {
 public:
  EventDecoder(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
               AcquisitionHistory* history, EventBatch* batch);

  // Appends the next event to the batch. Returns false if its columns contradict each other.
  bool Next() {
    const auto kind = static_cast<Kind>(kind_.Next());
    const Family family = FamilyOf(kind);
    Event& event = families_[static_cast<size_t>(family)].AppendNext(&batch_->events);
    event.kind = kind;
    if (TakeHead(&event) && TakeFamily(family, &event)) return true;
    batch_->events.pop_back();
    return false;
  }

 private:
  bool TakeHead(Event* event);
  bool TakeFamily(Family family, Event* event);
  bool TakeAcquisition(Event* event);
  void TakeReturn(Event* event);
  void TakeRole(Event* event);
  template <typename Source, typename Target>
  bool TakeDetail(const Source& source, int* row, Target* target, Event* event);

  const gmt::Events& columns_;
  const Returns returns_;
  AcquisitionHistory* const history_;
  EventBatch* const batch_;

  // A writer of readers before version 2 stored `present` and times differently.
  const bool has_changes_ = columns_.present_change_size() > 0;
  const bool has_widths_ = !columns_.t_width().empty();
  ColumnReader<int> kind_{columns_.kind()};
  ColumnReader<uint64_t> present_{has_changes_ ? columns_.present_change() : columns_.present()};
  std::array<uint64_t, kKindsOfPresent> present_of_kind_{};
  ColumnReader<int64_t> t_ns_{columns_.t_ns()};
  EventTimeReader times_{columns_.t_width(), columns_.t_bits()};
  int64_t last_t_ns_;
  ColumnReader<int32_t> thread_{columns_.thread()};
  uint32_t last_thread_ = 0;

  std::array<FamilyReader, static_cast<size_t>(Family::kOther) + 1> families_;
  ExpectedTotals totals_;

  ColumnReader<int64_t> address_{columns_.acquisitions().address()};
  ColumnReader<uint32_t> address_from_{columns_.acquisitions().address_from()};
  uint64_t last_address_ = 0;
  RecurringAddressReader known_addresses_{columns_.count()};
  TotalsReader acquisition_totals_{ColumnReader(columns_.acquisitions().total_allocated()),
                                   ColumnReader(columns_.acquisitions().total_reserved())};

  ColumnReader<uint64_t> return_distance_{columns_.returns().distance()};
  ColumnReader<uint32_t> return_same_{columns_.returns().same()};
  TotalsReader return_totals_{ColumnReader(columns_.returns().total_allocated()),
                              ColumnReader(columns_.returns().total_reserved())};

  ColumnReader<int64_t> role_row_{columns_.roles().row()};
  ColumnReader<uint32_t> role_same_{columns_.roles().same()};
  ColumnReader<int32_t> role_name_{columns_.roles().name()};
  uint64_t last_role_row_ = columns_.first_acquisition();  // row of acquisitions
  ExpectedNodes nodes_;

  int sample_ = 0, snapshot_ = 0, gap_ = 0, other_ = 0;  // number of details taken
};

EventDecoder::EventDecoder(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
                           AcquisitionHistory* history, EventBatch* batch)
    : columns_(columns),
      returns_(returns),
      history_(history),
      batch_(batch),
      last_t_ns_(AddWrapping(base_t_ns, columns.begin_t_ns())) {
#define GMT_ADD(name) family.AddColumn(message.name(), &Event::name);
#define GMT_ADD_SHARED(name, bit) GMT_ADD(name)
#define GMT_ADD_FAMILY(which, columns_of_family, add_columns) \
  {                                                           \
    auto& family = families_[static_cast<size_t>(which)];     \
    const auto& message = columns_of_family;                  \
    add_columns                                               \
  }
  GMT_ADD_FAMILY(Family::kAcquisition, columns.acquisitions(), GMT_ACQUISITION_COLUMNS(GMT_ADD))
  GMT_ADD_FAMILY(Family::kReturn, columns.returns(),
                 GMT_RETURN_COLUMNS(GMT_ADD) GMT_RETURN_SHARED_COLUMNS(GMT_ADD_SHARED))
  GMT_ADD_FAMILY(Family::kActivity, columns.activities(), GMT_ACTIVITY_COLUMNS(GMT_ADD))
  GMT_ADD_FAMILY(Family::kNote, columns.notes(), GMT_NOTE_COLUMNS(GMT_ADD))
  GMT_ADD_FAMILY(Family::kRole, columns.roles(),
                 GMT_ROLE_COLUMNS(GMT_ADD) GMT_ROLE_SHARED_COLUMNS(GMT_ADD_SHARED))
#undef GMT_ADD_FAMILY
#undef GMT_ADD_SHARED
#undef GMT_ADD
}

// Takes `present`, time and thread. Returns false if the event has no time.
bool EventDecoder::TakeHead(Event* event) {
  const uint64_t present = present_.Next();
  if (event->kind != ROLE) {
    event->present =
        has_changes_ ? present_of_kind_[KindOfPresent(event->kind)] ^= present : present;
  }
  int64_t difference = 0;
  if (!has_widths_) {
    difference = t_ns_.Next();
  } else if (!times_.Next(&difference)) {
    return false;
  }
  event->t_ns = last_t_ns_ = AddWrapping(last_t_ns_, difference);
  event->thread = last_thread_ += static_cast<uint32_t>(thread_.Next());
  return true;
}

// Returns false if the row refers to an address that does not exist.
bool EventDecoder::TakeAcquisition(Event* event) {
  const uint32_t from = address_from_.Next();
  if (from == 0) {
    last_address_ += static_cast<uint64_t>(address_.Next());
  } else if (!known_addresses_.Find(from, &last_address_)) {
    return false;
  }
  event->address = last_address_;
  known_addresses_.Add(last_address_, event->size);
  totals_.Decode(acquisition_totals_.Next(), nullptr, event);
  history_->Add(*event);
  return true;
}

// Fields that an event shares with its acquisition are taken from that.
#define GMT_TAKE_IF_SAME(name, bit) \
  if ((same & bit) != 0) event->name = source.name;

// Returns the source of shared fields. If the acquisition was in a lost chunk, returns an empty
// one and marks the fields as not present.
const Acquired& SourceOf(const Acquired* acquired, uint32_t same, Event* event) {
  static const Acquired kLost;
  if (acquired != nullptr) return *acquired;
  if ((same & kSameAddress) != 0) event->present &= ~uint64_t{kHasAddress | kHasSize};
  return kLost;
}

void EventDecoder::TakeReturn(Event* event) {
  const uint32_t same = return_same_.Next();
  const Acquired* acquired = history_->Find(return_distance_.Next());
  const Acquired& source = SourceOf(acquired, same, event);
  GMT_RETURN_SHARED_COLUMNS(GMT_TAKE_IF_SAME)
  if (acquired == nullptr && same != 0) totals_.Lose();
  totals_.Decode(return_totals_.Next(), acquired, event);
  if (acquired != nullptr && returns_ == Returns::kCompleted) CompleteReturn(*acquired, event);
  history_->Ended(*event, acquired);
}

void EventDecoder::TakeRole(Event* event) {
  const uint32_t same = role_same_.Next();
  last_role_row_ += static_cast<uint64_t>(role_row_.Next());
  const Acquired* acquired =
      same == 0 ? nullptr : history_->Find(history_->rows() - last_role_row_);
  const Acquired& source = SourceOf(acquired, same, event);
  GMT_ROLE_SHARED_COLUMNS(GMT_TAKE_IF_SAME)
  event->name = nodes_.Decode(event->forward_stack, role_name_.Next());
  if (acquired != nullptr && returns_ == Returns::kCompleted) CompleteRole(*acquired, event);
}

#undef GMT_TAKE_IF_SAME

// Takes a detail from the columns. A row without a detail is damage.
template <typename Source, typename Target>
bool EventDecoder::TakeDetail(const Source& source, int* row, Target* target, Event* event) {
  if (*row >= source.size()) return false;
  event->detail = static_cast<uint32_t>(target->size());
  target->push_back(source.Get((*row)++));
  return true;
}

bool EventDecoder::TakeFamily(Family family, Event* event) {
  switch (family) {
    case Family::kAcquisition:
      return TakeAcquisition(event);
    case Family::kReturn:
      TakeReturn(event);
      return true;
    case Family::kActivity:
    case Family::kNote:
      return true;
    case Family::kRole:
      TakeRole(event);
      return true;
    case Family::kSample:
      return TakeDetail(columns_.samples(), &sample_, &batch_->samples, event);
    case Family::kSnapshot:
      return TakeDetail(columns_.snapshots(), &snapshot_, &batch_->snapshots, event);
    case Family::kGap:
      return TakeDetail(columns_.gaps(), &gap_, &batch_->gaps, event);
    case Family::kOther:
      // A kind of a later version has columns that this version does not know.
      return event->kind != OTHER_KIND ||
             TakeDetail(columns_.others(), &other_, &batch_->others, event);
  }
  return false;
}

}  // namespace

absl::Status DecodeEvents(const gmt::Events& columns, int64_t base_t_ns, Returns returns,
                          AcquisitionHistory* history, EventBatch* batch) {
  if (columns.count() > kMaxEventsOfChunk) {
    return absl::OutOfRangeError(absl::StrCat("a chunk claims ", columns.count(), " events"));
  }
  history->ContinueAt(columns.first_acquisition());
  batch->events.reserve(batch->events.size() + columns.count());
  EventDecoder decoder(columns, base_t_ns, returns, history, batch);
  for (uint32_t row = 0; row < columns.count(); ++row) {
    if (!decoder.Next()) {
      return absl::DataLossError(absl::StrCat("event ", row, " of a chunk has no details"));
    }
  }
  return absl::OkStatus();
}

}  // namespace gmt::format
