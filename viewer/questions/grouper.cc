#include "viewer/questions/grouper.h"

#include "absl/strings/str_cat.h"
#include "analysis/report/report.h"
#include "analysis/text.h"
#include "viewer/index/names.h"
#include "viewer/questions/recording.h"

namespace gmt::viewer {

using analysis::FrameText;

Grouper::Grouper(Recording& recording, TableQuery::By by) : recording_(recording), by_(by) {
  const bool is_by_stack =
      by == TableQuery::kStack || by == TableQuery::kFunction || by == TableQuery::kFile;
  if (!is_by_stack) return;
  of_stack_.assign(recording.frames.definitions().stack_count() + size_t{1}, kNotSeen);
}

Grouper::Key Grouper::LabelOf(uint32_t stack, uint32_t forward_stack) {
  const auto [found, is_new] = by_stack_.try_emplace({stack, forward_stack});
  if (!is_new) return found->second;
  Key& key = found->second;
  const FrameText* own = recording_.frames.Own(stack, forward_stack);
  const auto by =
      by_ == TableQuery::kFile ? analysis::GroupBy::kFile : analysis::GroupBy::kFunction;
  const std::string label = own == nullptr ? "" : analysis::GroupLabel(by, *own);
  key.known = !label.empty();
  if (!key.known) return key;
  const auto [known, is_new_label] = by_label_.try_emplace(label, labels_.size());
  if (is_new_label) labels_.push_back(label);
  key.value = known->second;
  return key;
}

Grouper::Key Grouper::KeyOf(uint32_t row) {
  const analysis::Rows& rows = recording_.rows();
  switch (by_) {
    case TableQuery::kStack:
      return {rows.stack[row] != 0 || rows.forward_stack[row] != 0,
              uint64_t{rows.forward_stack[row]} << 32 | rows.stack[row]};
    case TableQuery::kFunction:
    case TableQuery::kFile:
      return LabelOf(rows.stack[row], rows.forward_stack[row]);
    case TableQuery::kCategory:
      return {true, static_cast<uint64_t>(recording_.CategoryOf(row))};
    case TableQuery::kSize:
      return {true, rows.size[row]};
    case TableQuery::kStream:
      if ((rows.flags[row] & analysis::kRowHasStream) == 0) return {false, 0};
      return {true, rows.stream[row]};
    case TableQuery::kThread:
      if ((rows.flags[row] & analysis::kRowHasThread) == 0) return {false, 0};
      return {true, rows.thread[row]};
    case TableQuery::kBlock:
      break;
  }
  return {true, row};
}

uint32_t Grouper::Find(const Key& key) {
  const auto [found, is_new] = groups_.try_emplace(key, count());
  if (is_new) keys_.push_back(key);
  return found->second;
}

uint32_t Grouper::Of(uint32_t row) {
  // Ids in a damaged file may be arbitrary; ids out of range take the slow path.
  const uint32_t stack = recording_.rows().stack[row];
  if (stack < of_stack_.size() && recording_.rows().forward_stack[row] == 0) {
    uint32_t& group = of_stack_[stack];
    return group != kNotSeen ? group : group = Find(KeyOf(row));
  }
  const Key key = KeyOf(row);
  if (last_group_ != UINT32_MAX && key == last_key_) return last_group_;
  last_key_ = key;
  return last_group_ = Find(key);
}

Grouper::Name Grouper::NameOf(uint32_t group, uint32_t row) const {
  const Key& key = keys_[group];
  const std::string unknown(kUnknownName);
  const uint32_t stack = recording_.rows().stack[row];
  const uint32_t forward_stack = recording_.rows().forward_stack[row];
  switch (by_) {
    case TableQuery::kStack: {
      std::string id = absl::StrCat("stack/", stack);
      if (forward_stack != 0) absl::StrAppend(&id, "+", forward_stack);
      return {std::move(id), recording_.frames.Label(stack, forward_stack), ""};
    }
    case TableQuery::kFunction: {
      const FrameText* own = recording_.frames.Own(stack, forward_stack);
      const std::string name = key.known ? labels_[key.value] : unknown;
      return {absl::StrCat("function/", name), name, own == nullptr ? "" : own->Place()};
    }
    case TableQuery::kFile: {
      const std::string name = key.known ? labels_[key.value] : unknown;
      return {absl::StrCat("file/", name), name, ""};
    }
    case TableQuery::kCategory:
      return {absl::StrCat("category/", key.value),
              std::string(analysis::NameOf(static_cast<analysis::Category>(key.value))), ""};
    case TableQuery::kSize:
      return {absl::StrCat("size/", key.value), Bytes(key.value), ""};
    case TableQuery::kStream: {
      const std::string name = key.known ? absl::StrCat("0x", absl::Hex(key.value)) : unknown;
      return {absl::StrCat("stream/", name), name, ""};
    }
    case TableQuery::kThread: {
      const std::string name = key.known ? absl::StrCat(key.value) : unknown;
      return {absl::StrCat("thread/", name), name, ""};
    }
    case TableQuery::kBlock:
      break;
  }
  return {};
}

bool Grouper::Less(uint32_t a, uint32_t b) const {
  const Key& left = keys_[a];
  const Key& right = keys_[b];
  if (left.known != right.known) return left.known;
  if (!left.known) return false;
  const bool has_label = by_ == TableQuery::kFunction || by_ == TableQuery::kFile;
  return has_label ? labels_[left.value] < labels_[right.value] : left.value < right.value;
}

}  // namespace gmt::viewer
