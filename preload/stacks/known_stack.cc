#include "preload/stacks/known_stack.h"

#include "preload/loader/own_image.h"
#include "preload/stacks/greenlets.h"
#include "preload/stacks/python/last_python_walk.h"
#include "preload/stacks/unwind/native_walk.h"

namespace gmt::preload {

#if GMT_HAS_NATIVE_WALK

namespace {

// Cache: Python frames beside the native ones.
constinit LastPythonWalk last_python_walks[KnownWalks::kTrees] = {};

bool AnyIn(const Greenlets::Text& text, KnownPath path) {
  bool any = false;
  do {
    any |= text.Holds(path.first()->behind);
  } while (path.DropFirst());
  return any;
}

// Adds the order of runs and native frames, of which `at` is the first, in `piece`. Returns false
// if a run has no native frame of its own, or no shown frame.
[[gnu::always_inline]] inline bool AddRuns(const Interpreter& python, const KnownWalks& walks,
                                           const KnownFrame* at, KnownPath::Piece piece,
                                           LastPythonWalk* runs, KnownStack* stack) {
  uint32_t inside = runs->shown();
  for (uint32_t n = runs->run_count(); n-- > 0;) {
    LastPythonWalk::Run& run = runs->run(n);
    if (run.outside == inside) return false;
    inside = run.outside;
    while (at > piece.last || piece.end <= run.marker) {
      if (!piece.Advance()) return false;
      at = piece.first;
    }
    const auto holds = [&](const KnownFrame* frame) __attribute__((always_inline)) {
      return frame->sp <= run.marker &&
             run.marker < (frame < piece.last ? frame[1].sp : piece.end);
    };
    const KnownFrame* eval = walks.FrameAt(run.native);
    if (eval < at || eval > piece.last || !holds(eval)) {
      for (eval = at; eval < piece.last && eval[1].sp <= run.marker;) ++eval;
      if (!holds(eval)) return false;
      run.native = walks.IndexOf(eval);
    }
    at = eval + 1;
    if (!python.OwnsAddress(eval->behind)) return false;
    stack->sum.AddRun(n, walks.CountFrom(eval) - 1, run.outside);
  }
  return true;
}

}  // namespace

bool FollowStack(const Interpreter& python, KnownStack* stack) {
  NativeWalk walk(CaptureRegisters(), NativeWalk::Known::kEarlierWalks);
  if (!walk.KeepAll(CaptureCaller())) return false;
  const KnownWalks& walks = *walk.walks();
  KnownPath& path = *walk.path();
  const auto is_own = [](const KnownFrame& frame) { return InOwnImage(frame.behind); };
  KnownPath::Piece piece(path);
  if (!path.DropWhile(is_own, &piece)) return false;
  const uint32_t count = path.Count();
  if (count == 0 || count > session::kMaxStackDepth) return false;
  const Greenlets::Text greenlets = Greenlets::text();
  if (greenlets.bytes != 0 && AnyIn(greenlets, path)) return false;
  stack->depth = count;
  stack->sum = path.Sum();

  const Interpreter::Thread thread = python.CurrentThread();
  if (thread.unreadable) return false;
  if (thread.state == 0) return true;
  LastPythonWalk* const frames = &last_python_walks[walks.number()];
  if (!frames->Follow(python, thread.state)) return false;
  if (frames->shown() == 0) return frames->run_count() == 0;
  if (!frames->PlaceMarkers(python.layout(), thread.state)) return false;
  stack->depth += frames->shown();
  stack->flags = session::kStackPython;
  stack->sum.Add(frames->sum());
  return stack->depth <= session::kMaxStackDepth &&
         AddRuns(python, walks, path.first(), piece, frames, stack);
}

bool FollowPythonStack(const Interpreter& python, KnownStack* stack) {
  KnownWalks* const walks = KnownWalks::Acquire(RuleCache::Epoch());
  if (walks == nullptr) return false;
  LastPythonWalk* const frames = &last_python_walks[walks->number()];
  const Interpreter::Thread thread = python.CurrentThread();
  const bool followed =
      !thread.unreadable && thread.state != 0 && frames->Follow(python, thread.state);
  if (followed) {
    stack->depth = frames->shown();
    stack->flags = session::kStackPython;
    stack->sum = frames->sum();
    stack->sum.AddRun(0, 0, 0);
  }
  walks->Release();
  return followed && stack->depth != 0;
}

#else

bool FollowStack(const Interpreter&, KnownStack*) { return false; }
bool FollowPythonStack(const Interpreter&, KnownStack*) { return false; }

#endif  // GMT_HAS_NATIVE_WALK

}  // namespace gmt::preload
