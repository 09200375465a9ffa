// preload/cupti/read_activity.h
//
// Converts a CUPTI record to an event.
//
// The library may be older or newer than the headers used at compile time. Structures of a kind
// only grow at their end, so everything read here lies in the part that all versions have (CUPTI
// 12.0 to 13.5, cupti_activity.h and cupti_activity_deprecated.h). The library itself steps to the
// next record.
//
// Times and the numbers of streams and contexts are CUPTI's; the caller converts them.

#ifndef GMT_PRELOAD_CUPTI_READ_ACTIVITY_H_
#define GMT_PRELOAD_CUPTI_READ_ACTIVITY_H_

#include <cupti.h>

#include "session/record.h"

namespace gmt::preload {

struct ReadActivity {
  session::Record record;  // kind kNone: nothing that is recorded
  uint64_t start = 0;      // in CUPTI's time; 0: unknown to CUPTI
  uint64_t end = 0;        // equal to start for a single moment
  uint32_t context = 0;    // CUPTI's numbers
  uint32_t stream = CUPTI_INVALID_STREAM_ID;
};

ReadActivity Read(const CUpti_Activity& activity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_READ_ACTIVITY_H_
