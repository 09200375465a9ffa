// viewer/index/together.h
//
// RunTogether: independent tasks on as many threads as the machine has processors.
//
// Thread safety: the tasks must not touch the same things. `done` is called by one thread at a time.

#ifndef GMT_VIEWER_INDEX_TOGETHER_H_
#define GMT_VIEWER_INDEX_TOGETHER_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace gmt::viewer {

// Begins the tasks in their order, so that the longest should come first, and returns when all have
// ended. `done` hears how many have. What a task throws is thrown on, once none runs any more; those that
// had not begun by then are left out.
void RunTogether(const std::vector<std::function<void()>>& tasks,
                 const std::function<void(size_t)>& done);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_TOGETHER_H_
