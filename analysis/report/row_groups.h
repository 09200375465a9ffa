// analysis/report/row_groups.h
//
// The groups of `report --by`: which group a row of a trace belongs to, and how the group is named.
//
// Ownership: the examination and the categories must outlive a RowGroups. Thread safety: free
// functions are pure; RowGroups caches what it has read from stacks, so one thread may use it.

#ifndef GMT_ANALYSIS_REPORT_ROW_GROUPS_H_
#define GMT_ANALYSIS_REPORT_ROW_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analysis/categories/alive_by_category.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/report/before_matches.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

enum class GroupBy {
  kStack,
  kFunction,
  kFile,
  kHeap,
  kThread,
  kStream,
  kSize,
  kLibrary,
  kCategory,
  kLayer,
  kDtype,     // the type of the tensor for which a block was allocated
  kNode,      // the autograd node that saved it for its backward pass
  kLayerNode  // that node with the layer whose forward pass created it
};

// Whether rows stand for lines of code: a stack, or the program's own frame in it.
bool IsByCode(GroupBy by);
// The words that ParseGroupBy() accepts.
std::vector<std::string> GroupByWords();
// Returns NOT_FOUND for any other word.
absl::StatusOr<GroupBy> ParseGroupBy(absl::string_view word);

// The label of a row of one function or file, from the program's own frame of its stacks; "" if it
// has no name. For kFunction, Python functions include their file, because many are called
// "forward".
std::string GroupLabel(GroupBy by, const FrameText& own);
// kLayer: label of workspaces, which are shared by all layers although the first one allocates
// them.
inline constexpr char kWorkspacesLayer[] = "workspaces";
// kLibrary: labels of driver and host memory, by LibraryOf; and of blocks, by their heap.
std::string LibraryLabel(const std::string& library);
std::string BlocksLabel(const std::string& heap);

// What the rows of one group have in common.
struct GroupKey {
  int32_t device;
  uint32_t heap;
  uint64_t number;   // stack and forward stack, thread, stream, size, category
  std::string name;  // function, file, library, layer, dtype, node, or the region's name
  bool known;        // false: for example no thread was recorded
  const BeforeGroup* before = nullptr;  // set for memory from before an attach

  auto Tuple() const { return std::tie(device, heap, number, name, known, before); }
  bool operator==(const GroupKey& other) const { return Tuple() == other.Tuple(); }
  template <typename H>
  friend H AbslHashValue(H h, const GroupKey& k) {
    return H::combine(std::move(h), k.device, k.heap, k.number, k.name, k.known, k.before);
  }
};

class RowGroups {
 public:
  RowGroups(const Examination& examination, const Categories& categories, GroupBy by);

  // `roles`: what rows are used for at the instant of the report. Read for kNode and kLayerNode.
  GroupKey KeyOf(RowId row, const RolesAt& roles);

  struct Name {
    std::string id;     // as ReportRow::id
    std::string label;  // "" for a stack
  };
  // `t_ns`: a stream is named as it was then.
  Name NameOf(const GroupKey& key, int64_t t_ns) const;

 private:
  const std::string& LayerOf(RowId row);
  const std::string& LayerOfStack(uint32_t stack);
  std::string NodeOf(RowId row, const RolesAt& roles);
  std::string LibraryOf(RowId row) const;
  const std::string& OwnName(uint32_t stack, uint32_t forward_stack);
  std::string StreamLabel(const GroupKey& key, int64_t t_ns) const;

  const Examination& examination_;
  const Categories& categories_;
  const Trace& trace_;
  const format::Definitions& definitions_;
  const GroupBy by_;
  std::optional<BeforeMatches> before_;  // set if IsByCode(by_)
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, std::string>
      own_names_;                                      // by stack and forward stack
  absl::flat_hash_map<uint32_t, std::string> layers_;  // by stack
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ROW_GROUPS_H_
