// preload/record/python_blocks.h
//
// Asks PyTorch, through Python's C API, what its caching allocator holds.
//
// Thread safety: AskPython() may be called from any thread without the GIL; it neither takes the
// GIL nor waits. The rest runs on Python's main thread with the GIL held.

#ifndef GMT_PRELOAD_RECORD_PYTHON_BLOCKS_H_
#define GMT_PRELOAD_RECORD_PYTHON_BLOCKS_H_

#include <stddef.h>
#include <stdint.h>

namespace gmt::preload {

// A segment, or a block of one, in the order of torch.cuda.memory_snapshot().
struct PythonBlock {
  uint64_t is_block;
  uint64_t device;
  uint64_t address;
  uint64_t size;
  uint64_t stream;
};

// Schedules back(argument) on Python's main thread. Returns nullptr, or why that is not possible.
const char* AskPython(int (*back)(void*), void* argument);

// Calls visit(context, blocks, count) once and returns nullptr, or returns why there is nothing to
// visit. Preserves an exception that the program is handling. REQUIRES: called inside such a
// callback.
const char* ReadPythonBlocks(void (*visit)(void* context, const char* blocks, size_t count),
                             void* context);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_PYTHON_BLOCKS_H_
