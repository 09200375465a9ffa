// preload/stacks/python/last_python_walk.h
//
// LastPythonWalk: the Python frames that a thread's last walk met, and their part of the digest
// of a stack (session/stack_digest.h). Two consecutive walks of a thread share most of their
// outer frames. The next walk visits every frame, but decodes and adds up only those that have
// changed.
//
//   frames   unused | innermost ... outermost | 0
//                     begin
//
// Why nothing is missed: the walk follows the interpreter's chain from the thread's innermost
// frame, link by link, so it reads only frames that exist. For a frame that it finds at the same
// address as last time it compares everything from which the frame was decoded: the code object,
// the instruction, the kind of the frame, and what tells apart code objects that had the same
// address (their number from 3.12 on; before, the count of code objects that were destroyed, see
// code_identity.h). Equal data are decoded equally. The next link is compared, too: if it does
// not lead to the frame that came next last time, the walk decodes frames until it meets a known
// one again. So nothing is assumed about what the program did in between. Frames may be reused
// by other functions, generators and coroutines may resume below other callers, greenlets may
// switch, outer frames may continue to another line.
//
// Frames of which the ordinary walk omits some (those that have not begun, see FrameReader) are
// left to it; so are more than kMaxFrames, and the free-threaded 3.14, where threads have copies
// of the bytecode.
//
// A frame is found by its address in a table of 256 places, which has its distance from the
// outermost frame. That stays the same while the thread calls and returns further in.
//
// Ownership and thread safety: one for each KnownWalks (preload/stacks/unwind/known_walks.h), used
// by whoever has acquired that. Cost: docs/overhead.md.

#ifndef GMT_PRELOAD_STACKS_PYTHON_LAST_PYTHON_WALK_H_
#define GMT_PRELOAD_STACKS_PYTHON_LAST_PYTHON_WALK_H_

#include <stdint.h>

#include "preload/stacks/python/interpreter.h"
#include "session/stack_digest.h"

namespace gmt::preload {

struct KnownPythonFrame {
  uint64_t frame;  // address of the interpreter's structure
  // What it was decoded from.
  uint64_t code, instruction;
  uint32_t number;
  uint32_t kind;
  bool has_no_code;
  bool ends_run;     // is the outermost one of a run (preload/stacks/python/python_walk.h)
  uint16_t outside;  // number of shown frames further out
  uint16_t runs;     // number of runs that end with it or further out
  uint64_t word;     // as in a stack (session/layout.h); 0: it is not shown
  uint64_t identity;
};

class LastPythonWalk {
 public:
  static constexpr uint32_t kMaxFrames = 128, kMaxRuns = 48;

  // The Python frames that one call of the eval function runs.
  struct Run {
    uint64_t marker;   // as in PythonWalk; up to 3.12 only after PlaceMarkers()
    uint32_t outside;  // number of shown frames further out
    uint32_t native;   // a guess, for the user: which native frame runs it
  };

  // Walks the frames of this thread, which is Interpreter::CurrentThread(). Returns false if the
  // ordinary walk has to do so.
  bool Follow(const Interpreter& python, uint64_t thread) {
    return python.follow()(this, python, thread);
  }
  // Reads the markers of the runs. Returns false if not every frame belongs to a run with a marker.
  bool PlaceMarkers(const Layout& layout, uint64_t thread);

  // Number of frames that a stack shows, and their sum without the runs.
  uint32_t shown() const { return ShownFrom(frames_[first_]); }
  const session::StackSum& sum() const { return sum_; }
  // Runs, outermost first.
  uint32_t run_count() const { return frames_[first_].runs; }
  Run& run(uint32_t n) { return runs_[n]; }

  // Returns the function that follows frames of interpreters with this layout.
  static Interpreter::FollowFrames FollowerFor(const Layout& layout);

 private:
  template <const Layout* kLayout>
  friend class FrameFollower;

  static constexpr uint32_t kPlaces = 256;
  static_assert(kMaxFrames < kPlaces);

  static uint32_t ShownFrom(const KnownPythonFrame& frame) {
    return frame.outside + (frame.word != 0 ? 1u : 0u);
  }
  static uint32_t PlaceOf(uint64_t frame) { return frame * 0x9e3779b97f4a7c15 >> 56; }

  uint32_t first_ = 0;                            // 0 also before the first walk
  uint32_t interpreter_ = 0;                      // Interpreter::identity() of the frames
  uint64_t generation_ = 0;                       // CodeIdentity::Generation() of the identities
  session::StackSum sum_;                         // all frames, without runs
  uint8_t places_[kPlaces] = {};                  // distance from the end
  Run runs_[kMaxRuns] = {};                       // outermost first
  KnownPythonFrame frames_[kMaxFrames + 1] = {};  // the last one: no frame
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_LAST_PYTHON_WALK_H_
