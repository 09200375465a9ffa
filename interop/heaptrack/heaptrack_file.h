// interop/heaptrack/heaptrack_file.h
//
// A recording as a data file of heaptrack, for heaptrack_print and heaptrack_gui: the text that
// heaptrack_interpret writes, version 2. Lines begin with a letter; numbers are hexadecimal:
//
//   s TEXT                                       a string; ids of all lines count from 1
//   i ADDRESS MODULE FUNCTION FILE LINE          a frame
//   t FRAME CALLER                               a stack: its innermost frame, and its callers' stack
//   a SIZE STACK                                 a size that was allocated there; ids from 0
//   + ID, - ID                                   one of those is allocated, freed
//   c MS                                         time in ms since the start
//
// heaptrack knows one heap: the recording must have one device, or one must be selected.
//
// Thread safety: pure function. Memory: the distinct frames, stacks and sizes.

#ifndef GMT_INTEROP_HEAPTRACK_HEAPTRACK_FILE_H_
#define GMT_INTEROP_HEAPTRACK_HEAPTRACK_FILE_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "analysis/examination/examination.h"

namespace gmt::interop {

// `heap`: as in interop/profile/layer_selection.h. Returns NOT_FOUND if the recording has no such
// device or heap, and FAILED_PRECONDITION if several devices would be added up; nothing is written
// then.
absl::Status WriteHeaptrackFile(const analysis::Examination& examination,
                                std::optional<int32_t> device, const std::string& heap,
                                std::ostream& out);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_HEAPTRACK_HEAPTRACK_FILE_H_
