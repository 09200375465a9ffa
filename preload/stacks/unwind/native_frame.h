// preload/stacks/unwind/native_frame.h

#ifndef GMT_PRELOAD_STACKS_UNWIND_NATIVE_FRAME_H_
#define GMT_PRELOAD_STACKS_UNWIND_NATIVE_FRAME_H_

#include <stdint.h>

namespace gmt::preload {

struct NativeFrame {
  uint64_t address;  // return address, or with `exact` the instruction itself
  uint64_t cfa;      // the frame owns the stack from the CFA of the frame before up to here
  bool exact;        // interrupted by a signal there, not behind a call
};

enum class WalkEnd : uint8_t {
  kNone,
  kOutermost,  // the thread's first frame has been given
  kTruncated,  // it has not, and cannot be reached
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_NATIVE_FRAME_H_
