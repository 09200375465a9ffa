// viewer/questions/flame_tree_builder.h
//
// FlameTreeBuilder: builds a call tree from stacks (viewer/questions/flame.h).
//
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_FLAME_TREE_BUILDER_H_
#define GMT_VIEWER_QUESTIONS_FLAME_TREE_BUILDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/categories/categories.h"
#include "analysis/stacks/frames.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

struct StackWeight {
  double bytes = 0, blocks = 0;
};

class FlameTreeBuilder {
 public:
  struct Style {
    bool with_lines = true;
    bool compares = false;
  };
  explicit FlameTreeBuilder(Style style);

  // `path`: the calls from the root; if empty, they are unknown. Frames must outlive the builder.
  void Add(const analysis::FrameTextPointers& path, analysis::Category category,
           const StackWeight& weight, bool is_before);
  FlameTree Build(size_t max_nodes) &&;

 private:
  using BytesOfCategories = std::array<double, analysis::kCategories>;

  uint32_t NameOf(const analysis::FrameText* frame);
  uint32_t Intern(std::string name);
  uint32_t ChildOf(uint32_t parent, uint32_t name);
  std::vector<double> Importance() const;
  void Prune(size_t max_nodes);

  const Style style_;
  FlameTree tree_;
  std::vector<BytesOfCategories> by_category_;  // of each node; empty in a comparison
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> children_;  // parent, name
  absl::flat_hash_map<const analysis::FrameText*, uint32_t> by_frame_;
  absl::flat_hash_map<std::string, uint32_t> by_name_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_FLAME_TREE_BUILDER_H_
