// preload/record/python_blocks.h
//
// Asks PyTorch, through Python's own API, what its caching allocator holds.
//
// Thread safety: AskPython() from any thread, without the GIL; it takes none and waits for nobody.
// What follows runs on Python's main thread, with the GIL.

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

// Has Python's main thread call back(argument) soon. nullptr, or why it cannot be asked.
const char* AskPython(int (*back)(void*), void* argument);

// REQUIRES: inside such a call. Calls visit(context, blocks, count) once, and returns nullptr; or why
// there is nothing to visit. An exception that is under way in the program stays.
const char* ReadPythonBlocks(void (*visit)(void* context, const char* blocks, size_t count),
                             void* context);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_RECORD_PYTHON_BLOCKS_H_
