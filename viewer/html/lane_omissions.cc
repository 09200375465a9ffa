#include "viewer/html/lane_omissions.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "viewer/html/varint_columns.h"

namespace gmt::viewer {
namespace {

using analysis::Step;

constexpr uint64_t kBorders = 1024;
constexpr size_t kMaxKeyEvents = 16;

// Returns the key events: peak, end, OOM errors and snapshots; only the first ones if there are
// hundreds.
std::vector<Step> KeyEvents(const StandaloneFile& file, const Lane& lane) {
  std::vector<Step> asked = {lane.peak_event, file.index->events()};
  for (const char* name : {"ooms", "snapshots"}) {
    const auto instants = file.meta.find(name);
    if (instants == file.meta.end()) continue;
    for (const auto& instant : *instants) {
      if (asked.size() < kMaxKeyEvents) asked.push_back(instant.value("event", Step{0}));
    }
  }
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  return asked;
}

std::vector<Step> Borders(const std::vector<Step>& asked, uint64_t events) {
  std::vector<Step> borders = asked;
  for (uint64_t i = 0; i < kBorders; ++i) {
    borders.push_back(static_cast<Step>(events * i / kBorders));
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace

LaneOmissions::LaneOmissions(const StandaloneFile& file, uint32_t lane)
    : trace_(file.recording->trace()),
      categories_(file.recording->categories()),
      peak_(file.index->lanes()[lane].peak_event),
      key_events_(KeyEvents(file, file.index->lanes()[lane])),
      borders_(Borders(key_events_, file.index->events())),
      by_category_(analysis::kCategories, 0) {}

void LaneOmissions::Note(analysis::RowId row, bool is_death, Step step, bool left_out) {
  OpenBefore(step);
  const uint64_t size = trace_.rows.size[row];
  live_ = is_death ? live_ - size : live_ + size;
  if (left_out) {
    const auto category = static_cast<size_t>(categories_.Of(row).category);
    Held& held = by_kind_[{trace_.rows.stack[row], trace_.rows.forward_stack[row],
                           static_cast<uint32_t>(category)}];
    const int64_t sign = is_death ? -1 : 1;
    by_category_[category] += static_cast<uint64_t>(sign) * size;
    held.bytes += sign * static_cast<int64_t>(size);
    held.blocks += sign;
    held_ += static_cast<uint64_t>(sign);
    if (!is_death) ++blocks_left_out_;
  }
  // The state after a border's own event is the first of its interval.
  const bool is_border = opened_.size() < borders_.size() && borders_[opened_.size()] == step;
  if (is_border || opened_.empty()) return;
  Border& border = opened_.back();
  border.min = std::min(border.min, live_);
  if (live_ <= border.max) return;
  border.max = live_;
  border.peak = step;
}

void LaneOmissions::OpenBefore(uint64_t step) {
  while (opened_.size() < borders_.size() && borders_[opened_.size()] < step) {
    const Step border = borders_[opened_.size()];
    opened_.push_back({by_category_, held_, live_, live_, border});
    if (std::binary_search(key_events_.begin(), key_events_.end(), border)) NoteStacks(border);
    if (border == peak_) {
      at_peak_ = std::accumulate(by_category_.begin(), by_category_.end(), uint64_t{0});
    }
  }
}

void LaneOmissions::NoteStacks(Step step) {
  std::vector<std::pair<Kind, Held>> live;
  for (const auto& [kind, held] : by_kind_) {
    if (held.blocks != 0) live.emplace_back(kind, held);
  }
  std::sort(live.begin(), live.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  auto entries = nlohmann::ordered_json::array();
  for (const auto& [kind, held] : live) {
    const auto& [stack, forward_stack, category] = kind;
    for (const uint32_t named : {stack, forward_stack}) {
      if (named != 0) stacks_.insert(named);
    }
    entries.push_back({stack, forward_stack, category, held.bytes, held.blocks});
  }
  stacks_at_.push_back({{"event", step}, {"entries", std::move(entries)}});
}

void LaneOmissions::Write(slab::Writer* writer, absl::flat_hash_set<uint32_t>* stacks) {
  OpenBefore(UINT64_MAX);
  // A file that contains all blocks has no borders.
  if (blocks_left_out_ == 0) opened_.clear(), stacks_at_ = nlohmann::ordered_json::array();
  VarintDeltas border, bytes, blocks, min, max, peak;
  for (size_t i = 0; i < opened_.size(); ++i) border.Add(borders_[i]);
  for (size_t category = 0; category < analysis::kCategories; ++category) {
    for (const Border& at : opened_) bytes.Add(at.bytes[category]);
  }
  for (const Border& at : opened_) {
    blocks.Add(at.blocks);
    min.Add(at.min);
    max.Add(at.max);
    peak.Add(at.peak);
  }
  writer->AddField("borders", opened_.size());
  writer->AddField("codes", analysis::kCategories);
  writer->AddField("omitted", std::move(stacks_at_));
  writer->AddArray("border", border.bytes());
  writer->AddArray("omitted.bytes", bytes.bytes());
  writer->AddArray("omitted.blocks", blocks.bytes());
  writer->AddArray("total.min", min.bytes());
  writer->AddArray("total.max", max.bytes());
  writer->AddArray("total.peak", peak.bytes());
  if (!opened_.empty()) stacks->insert(stacks_.begin(), stacks_.end());
}

}  // namespace gmt::viewer
