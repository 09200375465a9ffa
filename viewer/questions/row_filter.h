// viewer/questions/row_filter.h
//
// RowFilter: decides whether a block matches a Filter (queries.h). Each frame, stack and name is
// compared with the text once, so that a block costs one look-up.
//
// Regular expressions come from the user, or from a link that someone else sent. RE2 takes time
// linear in the text for any expression; a backtracking engine could be made to run forever.
//
// Ownership: the recording must outlive it. Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_ROW_FILTER_H_
#define GMT_VIEWER_QUESTIONS_ROW_FILTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace re2 {
class RE2;
}

namespace gmt::viewer {

class RowFilter {
 public:
  static constexpr size_t kMaxText = 1000;

  // Returns INVALID_ARGUMENT for a text that is too long, an invalid expression, or a name that is
  // not that of a stream, thread or category.
  static absl::StatusOr<RowFilter> Make(Recording& recording, const Filter& filter);
  RowFilter(RowFilter&&) noexcept;
  ~RowFilter();

  bool Matches(analysis::RowId row);
  // Returns whether every block matches.
  bool is_empty() const { return is_empty_; }
  // Returns whether all blocks of one stack, category, stream, thread and name match, or none.
  bool is_by_kind();

 private:
  RowFilter(Recording& recording, const Filter& filter);

  absl::Status TakeText();
  absl::Status TakeNames();
  bool FitsText(std::string_view text) const;
  bool FrameFits(uint32_t frame);
  bool StackFits(uint32_t stack);
  bool KeyFits(uint32_t stack);
  bool NameFits(uint32_t name);
  bool AddressFits(analysis::RowId row) const;
  bool TensorFits(analysis::RowId row);
  bool AliveFits(analysis::RowId row);
  bool MayFitAlive();

  Recording& recording_;
  Filter filter_;
  bool is_empty_ = false;
  std::string needle_;  // plain text in lower case; empty: there is an expression, or no text
  std::unique_ptr<re2::RE2> expression_;
  bool matches_addresses_ = false;
  std::optional<uint64_t> address_;  // given by the text

  struct Number {
    bool known = true;
    uint64_t value = 0;
  };
  std::optional<Number> stream_, thread_;
  std::optional<analysis::Category> category_;
  std::vector<uint8_t> frames_, stacks_, names_, keys_;  // by id: cached matches
  absl::flat_hash_map<uint64_t, bool> tensors_;          // by type and shape
  std::optional<std::vector<bool>> alive_;  // by code of AliveTexts; empty: none of them matches
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_ROW_FILTER_H_
