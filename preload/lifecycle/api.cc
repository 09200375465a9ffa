#include "preload/lifecycle/api.h"

#include <stdio.h>

#include "preload/base/export.h"
#include "preload/cupti/find_cupti.h"
#include "preload/lifecycle/start_late.h"
#include "preload/process/write_guard.h"
#include "preload/record/note.h"
#include "preload/routes/route.h"
#include "preload/stacks/python/interpreter.h"
#include "preload/stacks/python/python_walk.h"

using gmt::preload::Process;
using gmt::preload::WriteGuard;

GMT_EXPORT const char* gpumemtrace_python_status() {
  static constinit gmt::preload::Interpreter python;
  python.Find();
  gmt::preload::PythonWalk walk(python);
  walk.Begin();  // the first walk of a thread reads carefully
  python.CompareOnce();
  return python.status();
}

GMT_EXPORT const char* gpumemtrace_cupti_status() {
  static constinit char status[512] = {};
  gmt::preload::CuptiLibrary library;
  char reason[256];
  if (gmt::preload::FindCupti(&library, reason, sizeof(reason))) {
    snprintf(status, sizeof(status), "on: %s, version %u", library.name, library.version);
  } else {
    snprintf(status, sizeof(status), "off: %s", reason);
  }
  return status;
}

GMT_EXPORT int gpumemtrace_catching() {
  return gmt::preload::RouteTaken() != gmt::preload::Route::kNone ? 1 : 0;
}

GMT_EXPORT int gpumemtrace_start(char* text, size_t capacity) {
  return gmt::preload::StartLate(text, capacity);
}

GMT_EXPORT int gpumemtrace_attach(const char* options, char* text, size_t capacity) {
  return gmt::preload::AttachFromInside(options, text, capacity);
}

GMT_EXPORT int gpumemtrace_undo_attach(const char*, char* text, size_t capacity) {
  return gmt::preload::UndoAttachFromInside(text, capacity);
}

GMT_EXPORT int InitializeInjection() {
  if (gmt::preload::RouteTaken() == gmt::preload::Route::kNone)
    gmt::preload::BeginLate(gmt::preload::Route::kInjection);
  return 1;
}

GMT_EXPORT int gpumemtrace_recording() { return Process::IfRecording() != nullptr ? 1 : 0; }

GMT_EXPORT void gpumemtrace_mark(const char* name, uint64_t index) {
  const WriteGuard p(Process::IfRecording());
  if (p != nullptr && name != nullptr) gmt::preload::RecordMark(p, name, index);
}

GMT_EXPORT uint64_t gpumemtrace_range_begin(const char* name) {
  const WriteGuard p(Process::IfRecording());
  return p == nullptr || name == nullptr ? 0 : gmt::preload::BeginRange(p, name);
}

GMT_EXPORT void gpumemtrace_range_end(uint64_t range) {
  const WriteGuard p(Process::IfRecording());
  if (p != nullptr && range != 0) gmt::preload::EndRange(p, range);
}

GMT_EXPORT int gpumemtrace_snapshot(const char* name) {
  const WriteGuard p(Process::IfRecording());
  if (p == nullptr || name == nullptr) return 0;
  gmt::preload::AskForSnapshot(p, name);
  const bool has_collector =
      p->collector_started || p->map.control().collector_pid.load(std::memory_order_relaxed) != 0;
  return has_collector ? 1 : 0;
}
