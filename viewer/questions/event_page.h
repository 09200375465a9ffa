// viewer/questions/event_page.h
//
// A page of an EventList, with what the page shows of each entry.
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_EVENT_PAGE_H_
#define GMT_VIEWER_QUESTIONS_EVENT_PAGE_H_

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

absl::StatusOr<EventPage> MakeEventPage(Recording& recording, const EventsQuery& query);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_EVENT_PAGE_H_
