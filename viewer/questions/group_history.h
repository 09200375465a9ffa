// viewer/questions/group_history.h
//
// What the groups of a table (viewer/questions/grouper.h) held over the whole recording: the number
// of their blocks and their peak. Computing that takes a walk over all events, so the most recently
// used results are cached. Those by stack, which every click on a block needs, are computed for all
// lanes in one walk and never dropped.
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_GROUP_HISTORY_H_
#define GMT_VIEWER_QUESTIONS_GROUP_HISTORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "viewer/questions/grouper.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

class RowFilter;

struct GroupHistory {
  GroupHistory(Recording& recording, TableQuery::By by) : grouper(recording, by) {}

  Grouper grouper;
  std::vector<uint64_t> peak_bytes, blocks;  // by group
};

class GroupHistories {
 public:
  static constexpr size_t kKept = 8;

  // By stack, of all blocks of a lane. Valid for the lifetime of this object.
  GroupHistory& OfStacks(Recording& recording, uint32_t lane);
  // Returns the history of the blocks of a lane that match the filter. Valid until the next call.
  // REQUIRES: `row_filter` was made from `filter`.
  GroupHistory& Get(Recording& recording, uint32_t lane, TableQuery::By by, const Filter& filter,
                    RowFilter& row_filter);
  // Drops the results that depend on categories. Called when categories become known.
  void ForgetCategories();

 private:
  struct Entry {
    uint32_t lane = 0;
    TableQuery::By by = TableQuery::kStack;
    Filter filter;
    std::unique_ptr<GroupHistory> history;
  };
  std::vector<Entry> entries_;                            // the most recently used is last
  std::vector<std::unique_ptr<GroupHistory>> of_stacks_;  // by lane; empty: not computed yet
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_GROUP_HISTORY_H_
