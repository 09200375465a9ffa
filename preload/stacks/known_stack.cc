#include "preload/stacks/known_stack.h"

#include "preload/loader/own_image.h"
#include "preload/stacks/greenlets.h"
#include "preload/stacks/python/last_python_walk.h"
#include "preload/stacks/unwind/native_walk.h"

namespace gmt::preload {

#if GMT_HAS_NATIVE_WALK

namespace {

// Cache: Python frames beside the native ones of each last walk.
constinit LastPythonWalk last_python_walks[LastWalk::kWalks] = {};

bool AnyIn(const Greenlets::Text& text, const KnownFrame* first, const KnownFrame* end) {
  bool any = false;
  for (; first < end; ++first) any |= text.Holds(first->behind);
  return any;
}

// Adds the order of runs and native frames, of which the first shown is `first`. Returns false if a
// run has no native frame of its own, or no shown frame.
[[gnu::always_inline]] inline bool AddRuns(const Interpreter& python, const LastWalk& native,
                                           const KnownFrame* frames, uint32_t first,
                                           LastPythonWalk* runs, KnownStack* stack) {
  uint32_t inside = runs->shown();
  uint32_t at = first;
  for (uint32_t n = runs->run_count(); n-- > 0;) {
    LastPythonWalk::Run& run = runs->run(n);
    if (run.outside == inside) return false;
    inside = run.outside;
    const auto holds = [&](uint32_t frame) {
      return frame < LastWalk::kMaxFrames && frames[frame].sp <= run.marker &&
             run.marker < frames[frame + 1].sp;
    };
    if (run.native < at || !holds(run.native)) {
      while (at < LastWalk::kMaxFrames && frames[at + 1].sp <= run.marker) ++at;
      if (!holds(at)) return false;
      run.native = at;
    }
    const KnownFrame& eval = frames[run.native];
    at = run.native + 1;
    if (!python.OwnsAddress(eval.behind)) return false;
    stack->sum.AddRun(n, native.CountFrom(&eval + 1), run.outside);
  }
  return true;
}

}  // namespace

bool FollowStack(const Interpreter& python, KnownStack* stack) {
  NativeWalk walk(CaptureRegisters(), NativeWalk::Known::kLastWalk);
  LastWalk* const native = walk.KeepAll();
  if (native == nullptr) return false;
  KnownFrame* first = native->begin();
  while (first < native->end() && InOwnImage(first->behind)) ++first;
  const uint32_t count = native->CountFrom(first);
  if (count == 0 || count > session::kMaxStackDepth) return false;
  const Greenlets::Text greenlets = Greenlets::text();
  if (greenlets.bytes != 0 && AnyIn(greenlets, first, native->end())) return false;
  stack->depth = count;
  stack->sum = native->SumFrom(first);

  const Interpreter::Thread thread = python.CurrentThread();
  if (thread.unreadable) return false;
  if (thread.state == 0) return true;
  LastPythonWalk* const frames = &last_python_walks[native->number()];
  if (!frames->Follow(python, thread.state)) return false;
  if (frames->shown() == 0) return frames->run_count() == 0;
  if (!frames->PlaceMarkers(python.layout(), thread.state)) return false;
  stack->depth += frames->shown();
  stack->flags = session::kStackPython;
  stack->sum.Add(frames->sum());
  const KnownFrame* const all = native->end() - LastWalk::kMaxFrames;
  return stack->depth <= session::kMaxStackDepth &&
         AddRuns(python, *native, all, static_cast<uint32_t>(first - all), frames, stack);
}

bool FollowPythonStack(const Interpreter& python, KnownStack* stack) {
  LastWalk* const native = LastWalk::Acquire(RuleCache::Epoch());
  if (native == nullptr) return false;
  LastPythonWalk* const frames = &last_python_walks[native->number()];
  const Interpreter::Thread thread = python.CurrentThread();
  const bool followed =
      !thread.unreadable && thread.state != 0 && frames->Follow(python, thread.state);
  if (followed) {
    stack->depth = frames->shown();
    stack->flags = session::kStackPython;
    stack->sum = frames->sum();
    stack->sum.AddRun(0, 0, 0);
  }
  native->Release();
  return followed && stack->depth != 0;
}

#else

bool FollowStack(const Interpreter&, KnownStack*) { return false; }
bool FollowPythonStack(const Interpreter&, KnownStack*) { return false; }

#endif  // GMT_HAS_NATIVE_WALK

}  // namespace gmt::preload
