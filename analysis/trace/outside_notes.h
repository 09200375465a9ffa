// analysis/trace/outside_notes.h
//
// OutsideNotes: facts in a recording about device memory that no allocation of the process accounts
// for: its contexts, the code loaded on the device, the limits that it set, CUPTI's own memory, and
// memory of other processes that it opened. None of it counts as held (analysis/trace/trace.h, T1);
// the ledger
//
// Thread safety: plain data.

#ifndef GMT_ANALYSIS_TRACE_OUTSIDE_NOTES_H_
#define GMT_ANALYSIS_TRACE_OUTSIDE_NOTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gmt::analysis {

struct OutsideNote {
  enum Kind : uint8_t {
    kContextMade,
    kContextEnded,  // or reset
    kModuleLoaded,  // `bytes`: size of its image
    kModuleUnloaded,
    kLimitSet,     // `name`: "malloc_heap_size", "printf_fifo_size", "stack_size", ...
    kCuptiMemory,  // `bytes` in each context
    kImported,     // `bytes` that another process or API owns; `object`: address
    kUnimported,
  };
  Kind kind = kContextMade;
  uint32_t step = 0;  // after this many steps of the trace
  int64_t t_ns = 0;
  std::optional<int32_t> device;
  uint64_t object = 0;  // the context's number, the module, the address
  uint64_t bytes = 0;
  std::string name;

  // Compares steps and times: several notes may lie between two steps.
  bool IsBy(uint32_t that_step, int64_t that_t_ns) const {
    return step != that_step ? step < that_step : t_ns <= that_t_ns;
  }
};

// In the order of the events.
using OutsideNotes = std::vector<OutsideNote>;

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_OUTSIDE_NOTES_H_
