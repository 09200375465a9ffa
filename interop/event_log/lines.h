// interop/event_log/lines.h
//
// Lines: iterates over the lines of a text file. Lines end with '\n'.
//
// Memory: one MiB, and one line, which may have 1 GiB. Thread safety: one thread at a time.

#ifndef GMT_INTEROP_EVENT_LOG_LINES_H_
#define GMT_INTEROP_EVENT_LOG_LINES_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "format/byte_source.h"

namespace gmt::interop {

class Lines {
 public:
  Lines(format::ByteSource* log, absl::string_view name) : log_(*log), name_(name) {}

  // Replaces `*line` by the next line, without its end. Returns false after the last one.
  absl::StatusOr<bool> Next(std::string* line) {
    line->clear();
    for (;;) {
      if (rest_.empty()) {
        absl::Status status = log_.Read(offset_, kPieceBytes, &piece_);
        if (!status.ok()) return status;
        offset_ += piece_.size();
        rest_ = piece_;
      }
      if (rest_.empty()) {  // the last line has no end
        is_cut_ = !line->empty();
        number_ += is_cut_;
        return is_cut_;
      }
      const size_t end = rest_.find('\n');
      absl::StrAppend(line, rest_.substr(0, end));
      rest_.remove_prefix(std::min(rest_.size(), end == rest_.npos ? end : end + 1));
      if (line->size() > kMaxLineBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat(name_, ": line ", number_ + 1, " is longer than 1 GiB"));
      }
      if (end == rest_.npos) continue;
      ++number_;
      return true;
    }
  }
  uint64_t number() const { return number_; }  // line number, from 1, of what Next() returned
  bool is_cut() const { return is_cut_; }      // it has no line end

 private:
  static constexpr uint64_t kPieceBytes = 1 << 20;
  static constexpr uint64_t kMaxLineBytes = 1 << 30;

  format::ByteSource& log_;
  const absl::string_view name_;
  uint64_t offset_ = 0, number_ = 0;
  bool is_cut_ = false;
  std::string piece_;
  absl::string_view rest_;  // what is left of the piece
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_LINES_H_
