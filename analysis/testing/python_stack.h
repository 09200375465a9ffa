// analysis/testing/python_stack.h
//
// For tests: a stack of Python frames in an EventScript.

#ifndef GMT_ANALYSIS_TESTING_PYTHON_STACK_H_
#define GMT_ANALYSIS_TESTING_PYTHON_STACK_H_

#include <cstdint>
#include <vector>

#include "analysis/testing/event_script.h"

namespace gmt::analysis {

struct PythonFrame {
  const char* function;
  const char* file;
  uint32_t line = 10;
};

// Innermost first.
inline uint32_t PythonStack(EventScript& script, const std::vector<PythonFrame>& places) {
  std::vector<uint32_t> frames;
  for (const PythonFrame& place : places) {
    format::FrameInfo frame;
    frame.function = script.builder().InternString(place.function);
    frame.file = script.builder().InternString(place.file);
    frame.line = place.line;
    frame.language = format::Language::kPython;
    frames.push_back(script.builder().InternFrame(frame));
  }
  return script.builder().InternStack(frames, 0);
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TESTING_PYTHON_STACK_H_
