// format/kept_rows.h
//
// The rows of an AcquisitionHistory in a checkpoint (proto/gmt.proto, Checkpoint.acquired). From
// them, a reader that begins there knows what later events refer to.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_KEPT_ROWS_H_
#define GMT_FORMAT_KEPT_ROWS_H_

#include "absl/status/status.h"
#include "format/acquisition_history.h"
#include "format/messages_fwd.h"

namespace gmt::format {

void AddKept(const AcquisitionHistory& history, gmt::Checkpoint* checkpoint);
// Adds the rows of `checkpoint` to an empty history. Fails if they are damaged.
absl::Status Restore(const gmt::Checkpoint& checkpoint, AcquisitionHistory* history);

}  // namespace gmt::format

#endif  // GMT_FORMAT_KEPT_ROWS_H_
