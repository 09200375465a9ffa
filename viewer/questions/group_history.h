// viewer/questions/group_history.h
//
// What the groups of a table (viewer/questions/grouper.h) were over the whole recording: how many blocks
// they have had and the most that they held at one moment. That takes a walk over all events, so the
// last ones asked for are kept; those of all stacks, which every click on a block asks for, are found for
// all lanes in one walk and kept for good.
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

  // By stack, of all blocks of a lane. Valid as long as this.
  GroupHistory& OfStacks(Recording& recording, uint32_t lane);
  // Of the blocks of a lane that the filter lets through. Valid until the next call.
  // REQUIRES: `row_filter` is of `filter`.
  GroupHistory& Get(Recording& recording, uint32_t lane, TableQuery::By by, const Filter& filter,
                    RowFilter& row_filter);
  // Categories have become known: what was found by them, or about them, is no longer so.
  void ForgetCategories();

 private:
  struct Entry {
    uint32_t lane = 0;
    TableQuery::By by = TableQuery::kStack;
    Filter filter;
    std::unique_ptr<GroupHistory> history;
  };
  std::vector<Entry> entries_;                            // the last one asked for comes last
  std::vector<std::unique_ptr<GroupHistory>> of_stacks_;  // by lane; empty: not asked for yet
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_GROUP_HISTORY_H_
