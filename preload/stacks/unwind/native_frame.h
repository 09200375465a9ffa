// preload/stacks/unwind/native_frame.h
//
// What a walk of a native stack finds: its frames, and why it ended.
//
// Ownership: plain data.

#ifndef GMT_PRELOAD_STACKS_UNWIND_NATIVE_FRAME_H_
#define GMT_PRELOAD_STACKS_UNWIND_NATIVE_FRAME_H_

#include <stdint.h>

namespace gmt::preload {

struct NativeFrame {
  uint64_t address;  // return address; if `exact`, the instruction itself
  uint64_t cfa;      // the frame occupies the stack from the previous frame's CFA up to here
  bool exact;        // interrupted by a signal there, rather than having made a call
};

enum class WalkEnd : uint8_t {
  kNone,
  kOutermost,  // the thread's first frame has been returned
  kTruncated,  // the first frame has not been returned and cannot be reached
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_UNWIND_NATIVE_FRAME_H_
