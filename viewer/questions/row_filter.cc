#include "viewer/questions/row_filter.h"

#include <re2/re2.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "analysis/report/report.h"
#include "viewer/index/names.h"

namespace gmt::viewer {
namespace {

using analysis::RowId;

constexpr int64_t kExpressionBytes = 1 << 20;  // maximum memory of one expression

// Caches answers by id. Ids in a damaged file may be arbitrary: ids beyond `count` are invalid and
// share one entry.
template <typename Find>
bool Remember(uint32_t id, uint32_t count, std::vector<uint8_t>& known, const Find& find) {
  constexpr uint8_t kYes = 2, kNo = 1;
  if (known.empty()) known.assign(size_t{count} + 2, 0);
  const size_t at = id > count ? known.size() - 1 : id;
  if (known[at] == 0) known[at] = find() ? kYes : kNo;
  return known[at] == kYes;
}

std::string Hex(uint64_t address) { return absl::StrCat("0x", absl::Hex(address)); }

}  // namespace

RowFilter::RowFilter(Recording& recording, const Filter& filter)
    : recording_(recording), filter_(filter), is_empty_(filter == Filter{}) {}
RowFilter::RowFilter(RowFilter&&) noexcept = default;
RowFilter::~RowFilter() = default;

absl::StatusOr<RowFilter> RowFilter::Make(Recording& recording, const Filter& filter) {
  RowFilter made(recording, filter);
  if (absl::Status status = made.TakeText(); !status.ok()) return status;
  if (absl::Status status = made.TakeNames(); !status.ok()) return status;
  return made;
}

absl::Status RowFilter::TakeText() {
  const std::string& text = filter_.text;
  if (text.size() > kMaxText) {
    return absl::InvalidArgumentError(
        absl::StrCat("the text to look for is longer than ", kMaxText, " characters"));
  }
  if (text.size() > 2 && text.front() == '/' && text.back() == '/') {
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(kExpressionBytes);
    const std::string inside = text.substr(1, text.size() - 2);
    expression_ = std::make_unique<RE2>(inside, options);
    if (!expression_->ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is no regular expression: ", expression_->error()));
    }
    matches_addresses_ = absl::StartsWith(inside, "0x") || absl::StartsWith(inside, "^0x");
    return absl::OkStatus();
  }
  needle_ = absl::AsciiStrToLower(text);
  matches_addresses_ = absl::StartsWith(needle_, "0x");
  uint64_t address = 0;
  if (matches_addresses_ && absl::SimpleHexAtoi(needle_, &address)) address_ = address;
  return absl::OkStatus();
}

absl::Status RowFilter::TakeNames() {
  const auto wrong = [](absl::string_view what, const std::string& name) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no ", what));
  };
  if (!filter_.stream.empty()) {
    stream_ = Number();
    stream_->known = filter_.stream != kUnknownName;
    if (stream_->known && !absl::SimpleHexAtoi(filter_.stream, &stream_->value)) {
      return wrong("stream; write it as 0x7f00, or unknown", filter_.stream);
    }
  }
  if (!filter_.thread.empty()) {
    thread_ = Number();
    thread_->known = filter_.thread != kUnknownName;
    if (thread_->known && !absl::SimpleAtoi(filter_.thread, &thread_->value)) {
      return wrong("thread; write its number, or unknown", filter_.thread);
    }
  }
  if (filter_.category.empty()) return absl::OkStatus();
  for (size_t i = 0; i < analysis::kCategories; ++i) {
    const auto category = static_cast<analysis::Category>(i);
    if (filter_.category == NameOf(category) || filter_.category == TextOf(category)) {
      category_ = category;
      return absl::OkStatus();
    }
  }
  return wrong("category", filter_.category);
}

bool RowFilter::FitsText(std::string_view text) const {
  if (expression_) return RE2::PartialMatch({text.data(), text.size()}, *expression_);
  return absl::StrContains(absl::AsciiStrToLower({text.data(), text.size()}), needle_);
}

bool RowFilter::FrameFits(uint32_t frame) {
  return Remember(frame, recording_.frames.definitions().frame_count(), frames_, [&] {
    for (const analysis::FrameText& call : recording_.frames.Calls(frame)) {
      const std::string label =
          GroupLabel(analysis::GroupBy::kFunction, call);  // as displayed in tables
      const bool fits = FitsText(call.Name()) || FitsText(label) || FitsText(call.file) ||
                        FitsText(call.Place()) || FitsText(call.module);
      if (fits) return true;
    }
    return false;
  });
}

bool RowFilter::KeyFits(uint32_t stack) {
  return Remember(stack, recording_.frames.definitions().stack_count(), keys_,
                  [&] { return *filter_.key == recording_.frames.Key(stack); });
}

bool RowFilter::StackFits(uint32_t stack) {
  return Remember(stack, recording_.frames.definitions().stack_count(), stacks_, [&] {
    for (const uint32_t frame : recording_.frames.FrameIds(stack)) {
      if (FrameFits(frame)) return true;
    }
    return false;
  });
}

bool RowFilter::NameFits(uint32_t name) {
  const format::Definitions& definitions = recording_.frames.definitions();
  return name != 0 && Remember(name, definitions.string_count(), names_,
                               [&] { return FitsText(definitions.string(name)); });
}

bool RowFilter::AddressFits(RowId row) const {
  if (!matches_addresses_) return false;
  const analysis::Rows& rows = recording_.rows();
  const uint64_t address = rows.address[row];
  if (address_ && *address_ >= address && *address_ - address < rows.size[row]) return true;
  const std::string text = Hex(address);
  return expression_ ? FitsText(text) : absl::StartsWith(text, needle_);
}

bool RowFilter::TensorFits(RowId row) {
  const analysis::Rows& rows = recording_.rows();
  if (rows.Dtype(row) == 0) return false;
  const uint64_t key = uint64_t{rows.Dtype(row)} << 32 | rows.Shape(row);
  const auto [found, is_new] = tensors_.try_emplace(key, false);
  if (is_new) {
    found->second = FitsText(TensorText(recording_.frames.definitions(), rows, row));
  }
  return found->second;
}

bool RowFilter::MayFitAlive() {
  if (alive_) return !alive_->empty();
  alive_.emplace();
  if (recording_.categories == nullptr) return false;
  bool is_any = false;
  for (const std::string& text : recording_.alive_texts().texts()) {
    alive_->push_back(!text.empty() && FitsText(text));
    is_any = is_any || alive_->back();
  }
  if (!is_any) alive_->clear();
  return is_any;
}

bool RowFilter::AliveFits(RowId row) {
  return MayFitAlive() && (*alive_)[recording_.alive_texts().CodeOf(row)];
}

bool RowFilter::is_by_kind() {
  if (filter_.min_size || filter_.max_size || matches_addresses_) return false;
  return filter_.text.empty() || (recording_.rows().dtype_column.empty() && !MayFitAlive());
}

bool RowFilter::Matches(RowId row) {
  if (is_empty_) return true;
  const analysis::Rows& rows = recording_.rows();
  if (filter_.min_size && rows.size[row] < *filter_.min_size) return false;
  if (filter_.max_size && rows.size[row] > *filter_.max_size) return false;
  if (category_ && recording_.CategoryOf(row) != *category_) return false;
  const auto is = [&](const std::optional<Number>& asked, uint16_t has, uint64_t value) {
    if (!asked) return true;
    const bool known = (rows.flags[row] & has) != 0;
    return asked->known ? known && value == asked->value : !known;
  };
  if (stream_ && !is(stream_, analysis::kRowHasStream, rows.stream[row])) return false;
  if (thread_ && !is(thread_, analysis::kRowHasThread, rows.thread[row])) return false;
  const uint32_t stack = rows.stack[row];
  if (filter_.stack && *filter_.stack != stack) return false;
  if (filter_.forward_stack && *filter_.forward_stack != rows.forward_stack[row]) return false;
  if (filter_.key && !KeyFits(stack)) return false;
  if (filter_.text.empty() || StackFits(stack) || StackFits(rows.forward_stack[row])) return true;
  return NameFits(rows.Name(row)) || AddressFits(row) || TensorFits(row) || AliveFits(row);
}

}  // namespace gmt::viewer
