// viewer/questions/row_filter.h
//
// RowFilter: whether a block is one that a person looks for (queries.h, Filter). Every frame, stack and
// name is compared with the text once, so that a block costs a look-up.
//
// A regular expression comes from a person, or from a link that somebody sent: RE2 takes time in
// proportion to the text, whatever the expression; a backtracking one could be made to run for ever.
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

#include "absl/status/statusor.h"
#include "viewer/questions/recording.h"

namespace re2 {
class RE2;
}

namespace gmt::viewer {

class RowFilter {
 public:
  static constexpr size_t kMaxText = 1000;

  // INVALID_ARGUMENT for a text that is too long, an expression that is none, a name that is no
  // stream's, thread's or category's.
  static absl::StatusOr<RowFilter> Make(Recording& recording, const Filter& filter);
  RowFilter(RowFilter&&) noexcept;
  ~RowFilter();

  bool Matches(analysis::RowId row);
  // Every block matches.
  bool is_empty() const { return is_empty_; }

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

  Recording& recording_;
  Filter filter_;
  bool is_empty_ = false;
  std::string needle_;  // plain text, in lower case; empty: an expression, or none
  std::unique_ptr<re2::RE2> expression_;
  bool asks_addresses_ = false;
  std::optional<uint64_t> address_;  // that the text says

  struct Number {
    bool known = true;
    uint64_t value = 0;
  };
  std::optional<Number> stream_, thread_;
  std::optional<analysis::Category> category_;
  std::vector<uint8_t> frames_, stacks_, names_, keys_;  // by id: what fits, as far as asked
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_ROW_FILTER_H_
