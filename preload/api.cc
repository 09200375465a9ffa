#include "preload/api.h"

#include "preload/export.h"
#include "preload/python/interpreter.h"
#include "preload/python/python_walk.h"

GMT_EXPORT const char* gpumemtrace_python_status() {
  static constinit gmt::preload::Interpreter python;
  python.Find();
  gmt::preload::PythonWalk walk(python);
  walk.Begin();  // the first of a thread, which reads with care
  python.CompareOnce();
  return python.status();
}
