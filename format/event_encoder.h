// format/event_encoder.h
//
// EventEncoder: converts events one by one to the columns of a chunk (proto/gmt.proto, Events).
// Events are not stored. A value that is constant within a chunk costs only a comparison, so that
// a collector can process millions of events per second.
//
// Example
//   EventEncoder encoder(&history);
//   for (const Event& event : batch.events) encoder.Add(event);
//   gmt::Events& columns = encoder.Finish();
//   ...
//   encoder.Clear();
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_EVENT_ENCODER_H_
#define GMT_FORMAT_EVENT_ENCODER_H_

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "format/acquisition_history.h"
#include "format/columns.h"
#include "format/event.h"
#include "format/event_counts.h"
#include "format/event_fields.h"
#include "format/event_times.h"
#include "format/expected_nodes.h"
#include "format/expected_totals.h"
#include "format/recurring_addresses.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Writes a column that grows only when its value changes (see the rule in format/columns.h).
template <typename Values>
class ColumnWriter {
 public:
  using Value = typename Values::value_type;

  explicit ColumnWriter(Values* values) : values_(values) {}

  // Sets the value of a row. Rows are ascending; those left out have the value before them.
  void Set(int row, Value value) {
    if (value != last_) Change(row, value);
  }

 private:
  [[gnu::noinline]] void Change(int row, Value value) {
    if (values_->size() < row) values_->Resize(row, last_);
    values_->Add(value);
    last_ = value;
  }

  Values* values_;
  Value last_{};
};

class EventEncoder {
 public:
  // `history` is the one of the file segment; the rows of every chunk are added to it.
  explicit EventEncoder(AcquisitionHistory* history);
  EventEncoder(const EventEncoder&) = delete;
  EventEncoder& operator=(const EventEncoder&) = delete;

  // For the families that fit into a row. `slot`, unless null, is that of the last acquisition at
  // the event's place, and is set to the slot of the event if that is an acquisition.
  void Add(const Event& event, AcquisitionSlot* slot = nullptr);
  void Add(const Event& event, const Sample& sample);
  void Add(const Event& event, const SnapshotTaken& snapshot);
  void Add(const Event& event, const Gap& gap);
  void Add(const Event& event, const std::string& other);

  uint32_t events() const { return static_cast<uint32_t>(events_); }
  int64_t first_t_ns() const { return first_t_ns_; }  // minimum and maximum so far
  int64_t last_t_ns() const { return last_t_ns_; }
  const EventCounter& counts() const { return counts_; }

  // Returns the columns of a chunk whose first_t_ns is `base_t_ns`. Clear() must follow.
  gmt::Events& Finish(int64_t base_t_ns);
  gmt::Events& Finish() { return Finish(first_t_ns_); }
  // Starts the next chunk.
  void Clear();

 private:
  // Writers of the columns of a message, named after them.
#define GMT_WRITER(name)                                                         \
  ColumnWriter<std::remove_pointer_t<decltype(columns->mutable_##name())>> name{ \
      columns->mutable_##name()};
#define GMT_SHARED_WRITER(name, bit) GMT_WRITER(name)
  struct EventWriters {
    gmt::Events* columns;
    GMT_WRITER(kind)
    GMT_WRITER(present_change)
    GMT_WRITER(thread)
  };
  struct AcquisitionWriters {
    gmt::Acquisitions* columns;
    GMT_ACQUISITION_COLUMNS(GMT_WRITER)
    GMT_WRITER(address)
    GMT_WRITER(address_from)
    GMT_WRITER(total_allocated)
    GMT_WRITER(total_reserved)
  };
  struct ReturnWriters {
    gmt::Returns* columns;
    GMT_RETURN_COLUMNS(GMT_WRITER)
    GMT_RETURN_SHARED_COLUMNS(GMT_SHARED_WRITER)
    GMT_WRITER(distance)
    GMT_WRITER(same)
    GMT_WRITER(total_allocated)
    GMT_WRITER(total_reserved)
  };
  struct ActivityWriters {
    gmt::Activities* columns;
    GMT_ACTIVITY_COLUMNS(GMT_WRITER)
  };
  struct NoteWriters {
    gmt::Notes* columns;
    GMT_NOTE_COLUMNS(GMT_WRITER)
  };
  struct RoleWriters {
    gmt::Roles* columns;
    GMT_ROLE_COLUMNS(GMT_WRITER)
    GMT_ROLE_SHARED_COLUMNS(GMT_SHARED_WRITER)
    GMT_WRITER(row)
    GMT_WRITER(same)
    GMT_WRITER(name)
  };
#undef GMT_SHARED_WRITER
#undef GMT_WRITER

  void AddRow(const Event& event);
  void AddAcquisition(const Event& event, AcquisitionSlot* slot);
  void AddReturn(const Event& event, AcquisitionSlot last);
  void AddActivity(const Event& event);
  void AddNote(const Event& event);
  void AddRole(const Event& event, AcquisitionSlot last);

  AcquisitionHistory* const history_;
  EventCounter counts_;
  gmt::Events columns_;
  EventWriters event_{&columns_};
  EventTimeWriter times_{columns_.mutable_t_width(), columns_.mutable_t_bits()};
  AcquisitionWriters acquisition_{columns_.mutable_acquisitions()};
  ReturnWriters return_{columns_.mutable_returns()};
  ActivityWriters activity_{columns_.mutable_activities()};
  NoteWriters note_{columns_.mutable_notes()};
  RoleWriters role_{columns_.mutable_roles()};
  // Rows of the chunk so far: all, those of each family, and acquisitions with an address of their
  // own.
  int events_ = 0;
  int acquisitions_ = 0, returns_ = 0, activities_ = 0, notes_ = 0, roles_ = 0;
  int new_addresses_ = 0;
  int64_t begin_t_ns_ = 0;  // of the first event of the chunk
  int64_t previous_t_ns_ = 0, first_t_ns_ = 0, last_t_ns_ = 0;
  std::array<uint64_t, kKindsOfPresent> present_{};  // by kind: that of its last event
  RecurringAddressWriter addresses_;
  int64_t previous_address_ = 0;
  uint64_t previous_role_row_ = 0;
  uint32_t previous_thread_ = 0;
  ExpectedTotals totals_;
  ExpectedNodes nodes_;
};

// Encodes a whole batch. REQUIRES: batch.events.size() <= kMaxEventsOfChunk.
gmt::Events EncodeEvents(const EventBatch& batch, int64_t base_t_ns, AcquisitionHistory* history);

}  // namespace gmt::format

#endif  // GMT_FORMAT_EVENT_ENCODER_H_
