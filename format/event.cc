#include "format/event.h"

#include "proto/gmt.pb.h"

namespace gmt::format {

Family FamilyOf(Kind kind) {
  switch (kind) {
    case ALLOC:
    case ALLOC_FAILED:
    case RESERVE:
    case CREATE:
    case MAP:
    case IMPORT:
    case REGISTER:
      return Family::kAcquisition;
    case FREE:
    case FREE_DONE:
    case UNRESERVE:
    case RELEASE:
    case UNMAP:
    case UNIMPORT:
    case UNREGISTER:
      return Family::kReturn;
    case CONTEXT_CREATE:
    case CONTEXT_RESET:
    case STREAM:
    case EVENT_RECORD:
    case EVENT_WAIT:
    case SYNC:
    case POOL_ACTION:
    case GRAPH_ACTION:
    case MODULE_ACTION:
    case LIMIT_ACTION:
    case ALLOCATOR_ACTION:
    case COPY:
    case DEVICE_NAME:
    case WITNESS:
      return Family::kActivity;
    case MARK:
    case RANGE_BEGIN:
    case RANGE_END:
    case THREAD:
    case SOURCE_CHANGE:
    case STACK_LINE:
      return Family::kNote;
    case ROLE:
      return Family::kRole;
    case SAMPLE:
      return Family::kSample;
    case SNAPSHOT_TAKEN:
      return Family::kSnapshot;
    case GAP:
      return Family::kGap;
    default:
      return Family::kOther;
  }
}

EventBatch::EventBatch() = default;
EventBatch::~EventBatch() = default;
EventBatch::EventBatch(const EventBatch&) = default;
EventBatch::EventBatch(EventBatch&&) noexcept = default;
EventBatch& EventBatch::operator=(const EventBatch&) = default;
EventBatch& EventBatch::operator=(EventBatch&&) noexcept = default;

void EventBatch::Clear() {
  events.clear();
  samples.clear();
  snapshots.clear();
  gaps.clear();
  others.clear();
}

}  // namespace gmt::format
