#include "viewer/questions/event_page.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "analysis/text.h"
#include "viewer/index/names.h"

namespace gmt::viewer {
namespace {

using analysis::AllocatorAction;

// "retry, 20 MiB given back", "retry that did not help".
std::string ActionText(const AllocatorAction& action) {
  std::string text;
  switch (action.kind) {
    case AllocatorAction::kRetry:
      text = action.succeeded ? "retry" : "retry that did not help";
      break;
    case AllocatorAction::kEmptyCache:
      text = "cache emptied";
      break;
    case AllocatorAction::kGarbageCollection:
      text = "garbage collection";
      break;
    case AllocatorAction::kRelease:
      text = "cached memory given back";
      break;
    case AllocatorAction::kOom:
      break;
  }
  if (action.released_bytes > 0) {
    absl::StrAppend(&text, ": ", Bytes(action.released_bytes), " to the driver");
  }
  return text;
}

class EventPageMaker {
 public:
  EventPageMaker(Recording& recording, const EventList& list)
      : recording_(recording), trace_(recording.trace()), list_(list) {}

  EventRow RowOf(const EventList::Entry& entry) {
    EventRow row;
    row.event = entry.event;
    row.ns = entry.ns;
    row.kind = entry.kind;
    switch (entry.kind) {
      case EventKind::kAlloc:
      case EventKind::kFree:
      case EventKind::kFreeRequested:
      case EventKind::kSegmentAlloc:
      case EventKind::kSegmentFree:
        DescribeMemory(entry.index, row);
        break;
      case EventKind::kFreeCompleted:
        DescribeMemory(trace_.completions[entry.index].row, row);
        break;
      case EventKind::kFreeRefused:
        break;
      case EventKind::kMap:
      case EventKind::kUnmap:
        DescribeMapping(trace_.mappings[entry.index], row);
        break;
      case EventKind::kFailed:
        DescribeFailure(trace_.failed[entry.index], row);
        break;
      case EventKind::kAction:
        row.text = ActionText(list_.actions()[entry.index]);
        break;
      case EventKind::kRecordedAction: {
        const analysis::RecordedAction& action = trace_.actions[entry.index];
        const format::Definitions& definitions = recording_.frames.definitions();
        row.heap = trace_.heaps[action.heap];
        row.text = definitions.string(action.action);
        if (action.name != 0)
          absl::StrAppend(&row.text, " ", std::string(definitions.string(action.name)));
        break;
      }
      case EventKind::kMark: {
        const analysis::Mark& mark = trace_.marks[entry.index];
        row.text = mark.index ? absl::StrCat(mark.name, " ", *mark.index) : mark.name;
        break;
      }
      case EventKind::kSnapshot:
        row.text = trace_.snapshots[entry.index].name;
        break;
    }
    return row;
  }

 private:
  void DescribeMemory(analysis::RowId id, EventRow& row) {
    const analysis::Rows& rows = trace_.rows;
    row.row = id;
    row.bytes = rows.size[id];
    row.address = rows.address[id];
    row.heap = trace_.heaps[rows.heap[id]];
    row.stream = StreamName(rows, id);
    row.text = recording_.frames.Label(rows.stack[id], rows.forward_stack[id]);
  }

  void DescribeMapping(const analysis::Mapping& mapping, EventRow& row) {
    row.row = mapping.physical;
    row.bytes = mapping.size;
    row.address = mapping.address;
    row.heap = trace_.heaps[analysis::kDriverHeap];
    row.text = recording_.frames.Label(mapping.stack);
  }

  void DescribeFailure(const analysis::FailedAllocation& failed, EventRow& row) {
    row.bytes = failed.size;
    row.heap = trace_.heaps[failed.heap];
    row.text = recording_.frames.Label(failed.stack, failed.forward_stack);
  }

  Recording& recording_;
  const analysis::Trace& trace_;
  const EventList& list_;
};

}  // namespace

absl::StatusOr<EventPage> MakeEventPage(Recording& recording, const EventsQuery& query) {
  if (absl::Status status = recording.Check(query.lane, query.event); !status.ok()) return status;
  const EventList& list = recording.events(recording.lanes[query.lane].device);
  EventPage page;
  page.total = list.Total(query.kinds);
  page.position = list.Position(query.kinds, query.event);
  page.counts = list.counts();
  EventPageMaker maker(recording, list);
  for (const EventList::Entry& entry : list.Page(query.kinds, query.offset, query.limit)) {
    page.rows.push_back(maker.RowOf(entry));
  }
  return page;
}

}  // namespace gmt::viewer
