// format/id_shift.h
//
// Ids of a second file segment (`cat a.gmt b.gmt`) count from 1 again. A reader shifts them past
// those of the previous segments, so that an id is unique within the file.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_ID_SHIFT_H_
#define GMT_FORMAT_ID_SHIFT_H_

#include "format/definitions.h"
#include "format/event.h"
#include "format/messages_fwd.h"

namespace gmt::format {

// Shift every id except 0 ("none").
void ShiftIds(const Definitions::Base& base, Event* event);
void ShiftIds(const Definitions::Base& base, gmt::Snapshot* snapshot);
void ShiftIds(const Definitions::Base& base, gmt::Aggregates* aggregates);

}  // namespace gmt::format

#endif  // GMT_FORMAT_ID_SHIFT_H_
