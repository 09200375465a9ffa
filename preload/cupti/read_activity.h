// preload/cupti/read_activity.h
//
// One record of CUPTI's, as an event of ours.
//
// A library may be older or newer than the headers that this was compiled with. The structures of a
// kind grow at their end only, so what is read here lies in the part that all versions have (CUPTI
// 12.0 to 13.5, cupti_activity.h and cupti_activity_deprecated.h), and the step to the next record is
// the library's own.
//
// Times and the numbers of streams and contexts are CUPTI's; the caller makes them ours.

#ifndef GMT_PRELOAD_CUPTI_READ_ACTIVITY_H_
#define GMT_PRELOAD_CUPTI_READ_ACTIVITY_H_

#include <cupti.h>

#include "session/record.h"

namespace gmt::preload {

struct ReadActivity {
  session::Record record;  // kind kNone: nothing that we record
  uint64_t start = 0;      // in CUPTI's time; 0: CUPTI does not know
  uint64_t end = 0;        // the same as the start for what is one moment
  uint32_t context = 0;    // CUPTI's numbers
  uint32_t stream = CUPTI_INVALID_STREAM_ID;
};

ReadActivity Read(const CUpti_Activity& activity);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_READ_ACTIVITY_H_
