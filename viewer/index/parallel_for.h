// viewer/index/parallel_for.h
//
// ParallelFor: runs independent tasks on as many threads as the machine has processors.
//
// Thread safety: the tasks must not access the same data. `done` is called by one thread at a time.

#ifndef GMT_VIEWER_INDEX_PARALLEL_FOR_H_
#define GMT_VIEWER_INDEX_PARALLEL_FOR_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace gmt::viewer {

// Starts the tasks in order (so the longest should come first) and returns when all have ended.
// `done` is called with the number of tasks that have ended. If a task throws, the remaining tasks
// are not started, and the exception is rethrown after the running ones have ended.
void ParallelFor(const std::vector<std::function<void()>>& tasks,
                 const std::function<void(size_t)>& done);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_PARALLEL_FOR_H_
