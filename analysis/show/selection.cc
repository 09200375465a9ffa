#include "analysis/show/selection.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/report/before_matches.h"
#include "analysis/report/report.h"
#include "analysis/stacks/module_path.h"

namespace gmt::analysis {
namespace {

constexpr size_t kNamesListed = 6;

using StackTest = std::function<bool(uint32_t)>;

// Returns by stack id whether it matches; tests each stack once.
std::vector<bool> MatchStacks(const Trace& trace, const StackTest& matches) {
  std::vector<bool> seen, matching;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    const uint32_t stack = trace.rows.stack[row];
    if (stack >= seen.size()) seen.resize(size_t{stack} + 1), matching.resize(size_t{stack} + 1);
    if (seen[stack]) continue;
    seen[stack] = true;
    matching[stack] = matches(stack);
  }
  return matching;
}

template <typename Test>
std::vector<bool> RowsThat(const Trace& trace, const Test& test) {
  std::vector<bool> rows(trace.rows.count());
  for (RowId row = 0; row < trace.rows.count(); ++row) rows[row] = test(row);
  return rows;
}

std::vector<bool> RowsOfStacks(const Trace& trace, const StackTest& matches) {
  const std::vector<bool> matching = MatchStacks(trace, matches);
  return RowsThat(trace, [&](RowId row) { return matching[trace.rows.stack[row]]; });
}

std::string OwnName(const Examination& examination, RowId row, GroupBy by) {
  const Rows& rows = examination.trace().rows;
  const FrameText* own = examination.stacks().Own(rows.stack[row], rows.forward_stack[row]);
  return own == nullptr ? "" : GroupLabel(by, *own);
}

// Tests each pair of stack and forward stack once.
std::vector<bool> RowsOfCode(const Examination& examination, GroupBy by, const std::string& name) {
  const Rows& rows = examination.trace().rows;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, bool> matches;
  return RowsThat(examination.trace(), [&](RowId row) {
    const auto [it, is_new] = matches.try_emplace({rows.stack[row], rows.forward_stack[row]});
    if (is_new) it->second = OwnName(examination, row, by) == name;
    return it->second;
  });
}

// Only memory of the driver and the host belongs to a library; blocks belong to their heap.
std::vector<bool> RowsOfLibrary(const Examination& examination, const std::string& name) {
  const Trace& trace = examination.trace();
  const std::vector<bool> of_library = MatchStacks(trace, [&](uint32_t stack) {
    return LibraryLabel(examination.stacks().Library(stack)) == name;
  });
  std::vector<bool> of_heap;
  for (const std::string& heap : trace.heaps) of_heap.push_back(BlocksLabel(heap) == name);
  return RowsThat(trace, [&](RowId row) {
    const uint32_t heap = trace.rows.heap[row];
    return heap > kHostHeap ? of_heap[heap] : of_library[trace.rows.stack[row]];
  });
}

// The forward pass's stack for memory of a backward pass, as in a report.
uint32_t StackOfLayer(const Rows& rows, RowId row) {
  return rows.forward_stack[row] != 0 ? rows.forward_stack[row] : rows.stack[row];
}

std::string LayerOf(const Examination& examination, const Categories& categories, RowId row) {
  if (categories.Of(row).category == Category::kWorkspaces) return kWorkspacesLayer;
  const uint32_t stack = StackOfLayer(examination.trace().rows, row);
  const std::string path = ModulePath(examination.stacks().Frames(stack));
  return path.empty() ? "outside of modules" : path;
}

std::vector<bool> RowsOfLayer(const Examination& examination, const Categories& categories,
                              const std::string& name) {
  const Trace& trace = examination.trace();
  absl::flat_hash_map<std::pair<uint32_t, bool>, bool> matches;
  return RowsThat(trace, [&](RowId row) {
    const bool is_workspace = categories.Of(row).category == Category::kWorkspaces;
    const auto [it, is_new] = matches.try_emplace({StackOfLayer(trace.rows, row), is_workspace});
    if (is_new) it->second = LayerOf(examination, categories, row) == name;
    return it->second;
  });
}

std::vector<bool> RowsOfLeak(const Trace& trace, const LeakReport& leaks, const std::string& id) {
  for (const LeakSuspect& suspect : leaks.suspects) {
    if (suspect.id != id) continue;
    std::set<uint32_t> stacks;
    for (const LeakStack& stack : suspect.stacks) stacks.insert(stack.stack);
    std::vector<bool> rows =
        RowsOfStacks(trace, [&](uint32_t stack) { return stacks.contains(stack); });
    for (RowId row = 0; row < trace.rows.count(); ++row) {
      if (trace.rows.device[row] != suspect.device) rows[row] = false;
    }
    return rows;
  }
  return std::vector<bool>(trace.rows.count());
}

std::vector<bool> RowsOf(const Examination& examination, const Categories& categories,
                         const LeakReport& leaks, const Subject& subject) {
  const Trace& trace = examination.trace();
  const Rows& rows = trace.rows;
  switch (subject.kind) {
    case Subject::kStack:
      return RowsThat(trace, [&](RowId row) {
        return rows.stack[row] == subject.number &&
               (subject.forward == 0 || rows.forward_stack[row] == subject.forward);
      });
    case Subject::kThread:
      return RowsThat(trace, [&](RowId row) {
        const bool known = (rows.flags[row] & kRowHasThread) != 0;
        return known != subject.unknown && (!known || rows.thread[row] == subject.number);
      });
    case Subject::kStream:
      return RowsThat(trace, [&](RowId row) {
        const bool known = (rows.flags[row] & kRowHasStream) != 0;
        return known != subject.unknown && (!known || rows.stream[row] == subject.number);
      });
    case Subject::kSize:
      return RowsThat(trace, [&](RowId row) { return rows.size[row] == subject.number; });
    case Subject::kHeap:
      return RowsThat(trace,
                      [&](RowId row) { return trace.heaps[rows.heap[row]] == subject.name; });
    case Subject::kLibrary:
      return RowsOfLibrary(examination, subject.name);
    case Subject::kFunction:
    case Subject::kFile: {
      const GroupBy by = subject.kind == Subject::kFile ? GroupBy::kFile : GroupBy::kFunction;
      return RowsOfCode(examination, by, subject.name);
    }
    case Subject::kLayer:
      return RowsOfLayer(examination, categories, subject.name);
    case Subject::kCategory:
      return RowsThat(
          trace, [&](RowId row) { return NameOf(categories.Of(row).category) == subject.name; });
    case Subject::kDevice:
      return RowsThat(trace, [&](RowId row) {
        return subject.unknown ? rows.device[row] == kHostDevice
                               : rows.device[row] >= 0 &&
                                     static_cast<uint64_t>(rows.device[row]) == subject.number;
      });
    case Subject::kBefore: {
      const BeforeMatches matches(examination, categories, leaks);
      return RowsThat(trace, [&](RowId row) {
        const BeforeGroup* group = matches.Of(row);
        return group != nullptr && group->id == subject.id();
      });
    }
    case Subject::kLeak:
      return RowsOfLeak(trace, leaks, subject.id());
    default:
      return std::vector<bool>(rows.count());
  }
}

// S1.
std::vector<bool> InOneLayer(const Trace& trace, const std::vector<bool>& rows, bool outermost) {
  const Rows& all = trace.rows;
  const auto is_region = [&](RowId row) { return all.IsRegion(row); };
  const auto is_block = [&](RowId row) { return all.heap[row] > kHostHeap && !is_region(row); };
  bool has_blocks = false, has_memory = false;
  for (RowId row = 0; row < all.count(); ++row) {
    if (!rows[row]) continue;
    has_blocks |= is_block(row);
    has_memory |= !is_region(row);
  }
  std::vector<bool> counted = rows;
  for (RowId row = 0; row < all.count(); ++row) {
    const uint16_t flags = all.flags[row];
    const bool inner = is_block(row) && (flags & kRowUnbacked) == 0;
    const bool outer = (flags & kRowHoldsBlocks) != 0;
    if (is_region(row) ? has_memory : outermost ? inner : has_blocks && outer) counted[row] = false;
  }
  return counted;
}

std::string List(const std::string& prefix, const std::set<std::string>& names) {
  std::vector<std::string> listed;
  for (const std::string& name : names) {
    if (listed.size() == kNamesListed) {
      listed.push_back("...");
      break;
    }
    listed.push_back(prefix + name);
  }
  return absl::StrJoin(listed, ", ");
}

std::set<std::string> NamesOfRows(const Examination& examination, const Categories& categories,
                                  Subject::Kind kind) {
  const Trace& trace = examination.trace();
  const Rows& rows = trace.rows;
  std::set<std::string> names;
  // Each distinct value is converted to text once.
  std::set<uint64_t> seen;
  for (RowId row = 0; row < rows.count(); ++row) {
    switch (kind) {
      case Subject::kThread: {
        const bool known = (rows.flags[row] & kRowHasThread) != 0;
        if (!seen.insert(known ? rows.thread[row] : UINT64_MAX).second) break;
        names.insert(known ? absl::StrCat(rows.thread[row]) : "unknown");
        break;
      }
      case Subject::kStream: {
        const bool known = (rows.flags[row] & kRowHasStream) != 0;
        if (!seen.insert(known ? rows.stream[row] : UINT64_MAX).second) break;
        names.insert(known ? absl::StrCat("0x", absl::Hex(rows.stream[row])) : "none");
        break;
      }
      case Subject::kHeap:
        if (seen.insert(rows.heap[row]).second) names.insert(trace.heaps[rows.heap[row]]);
        break;
      case Subject::kDevice: {
        const int32_t device = rows.device[row];
        if (!seen.insert(static_cast<uint32_t>(device)).second) break;
        names.insert(device == kHostDevice ? "host" : absl::StrCat(device));
        break;
      }
      case Subject::kCategory: {
        const Category category = categories.Of(row).category;
        if (!seen.insert(static_cast<uint64_t>(category)).second) break;
        names.insert(std::string(NameOf(category)));
        break;
      }
      case Subject::kLayer: {
        const bool is_workspace = categories.Of(row).category == Category::kWorkspaces;
        if (!seen.insert(uint64_t{is_workspace} << 32 | StackOfLayer(rows, row)).second) break;
        names.insert(LayerOf(examination, categories, row));
        break;
      }
      case Subject::kLibrary:
        if (!seen.insert(uint64_t{rows.heap[row]} << 32 | rows.stack[row]).second) break;
        names.insert(rows.heap[row] > kHostHeap
                         ? BlocksLabel(trace.heaps[rows.heap[row]])
                         : LibraryLabel(examination.stacks().Library(rows.stack[row])));
        break;
      default: {
        if (!seen.insert(uint64_t{rows.forward_stack[row]} << 32 | rows.stack[row]).second) break;
        const GroupBy by = kind == Subject::kFile ? GroupBy::kFile : GroupBy::kFunction;
        names.insert(OwnName(examination, row, by));
      }
    }
  }
  names.erase("");
  return names;
}

std::string ListStacks(const Trace& trace) {
  std::set<uint32_t> stacks;
  for (RowId row = 0; row < trace.rows.count(); ++row) {
    const uint32_t stack = trace.rows.stack[row];
    if (stack == 0 || (stacks.size() > kNamesListed && stack >= *stacks.rbegin())) continue;
    stacks.insert(stack);
    if (stacks.size() > kNamesListed + 1) stacks.erase(std::prev(stacks.end()));
  }
  std::vector<std::string> listed;
  for (const uint32_t stack : stacks) listed.push_back(absl::StrCat("stack/", stack));
  if (listed.size() > kNamesListed) listed.back() = "...";
  return absl::StrJoin(listed, ", ");
}

std::string FirstToLast(const char* kind, uint64_t last) {
  if (last == 0) return "";
  if (last == 1) return absl::StrCat(kind, "1");
  return absl::StrCat(kind, "1 to ", kind, last);
}

}  // namespace

Selection::Selection(std::vector<bool> rows) : Selection(rows, rows) {}

Selection::Selection(std::vector<bool> rows, std::vector<bool> counted)
    : rows_(std::move(rows)), counted_(std::move(counted)) {
  count_ = static_cast<RowId>(std::count(counted_.begin(), counted_.end(), true));
  left_out_ = static_cast<RowId>(std::count(rows_.begin(), rows_.end(), true)) - count_;
}

Selection Select(const Examination& examination, const Categories& categories,
                 const LeakReport& leaks, const Subject& subject) {
  std::vector<bool> rows = RowsOf(examination, categories, leaks, subject);
  std::vector<bool> counted =
      InOneLayer(examination.trace(), rows, subject.kind == Subject::kDevice);
  return {std::move(rows), std::move(counted)};
}

std::string WhatThereIs(const Examination& examination, const Categories& categories,
                        const LeakReport& leaks, Subject::Kind kind) {
  const Trace& trace = examination.trace();
  std::set<std::string> names;
  switch (kind) {
    case Subject::kStack:
      return ListStacks(trace);
    case Subject::kStep:
      return FirstToLast("step/", examination.cycles().cycles.size());
    case Subject::kEvent:
      return FirstToLast("event/", trace.last_step());
    case Subject::kLeak:
      return FirstToLast("leak/", leaks.suspects.size());
    case Subject::kSnapshot:
      for (const NamedInstant& snapshot : trace.snapshots) names.insert(snapshot.name);
      return List("snapshot/", names);
    case Subject::kRange:
      for (const Range& range : trace.ranges) names.insert(range.name);
      return List("range/", names);
    case Subject::kMark:
      for (const Mark& mark : trace.marks) names.insert(mark.name);
      return List("mark/", names);
    case Subject::kBefore: {
      const BeforeMatches matches(examination, categories, leaks);
      for (const BeforeGroup& group : matches.groups()) names.insert(group.id);
      return List("", names);
    }
    case Subject::kSize:
    case Subject::kBlock:
    case Subject::kNamed:
      return "";
    default:
      return List(absl::StrCat(std::string(NameOf(kind)), "/"),
                  NamesOfRows(examination, categories, kind));
  }
}

}  // namespace gmt::analysis
