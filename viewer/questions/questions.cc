#include "viewer/questions/questions.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "viewer/questions/block_details.h"
#include "viewer/questions/event_page.h"
#include "viewer/questions/find.h"
#include "viewer/questions/flame.h"
#include "viewer/questions/passing_curve.h"
#include "viewer/questions/predicted_curve.h"
#include "viewer/questions/range_table.h"
#include "viewer/questions/recording.h"
#include "viewer/questions/segments.h"
#include "viewer/questions/table.h"

namespace gmt::viewer {
namespace {

constexpr size_t kMaxStacks = 1000;  // per query

}  // namespace

struct Questions::State {
  State(const analysis::Examination& examination, std::vector<Lane> lanes)
      : recording(examination, std::move(lanes)), predictions(examination) {}

  Recording recording;
  Predictions predictions;
};

Questions::Questions(const analysis::Examination& examination, std::vector<Lane> lanes)
    : state_(std::make_unique<State>(examination, std::move(lanes))) {}
Questions::~Questions() = default;

void Questions::SetCategories(const analysis::Categories* categories) {
  state_->recording.categories = categories;
  state_->recording.histories.ForgetCategories();
  state_->recording.found_total.reset();
  state_->recording.ForgetKinds();
}

const analysis::AliveTexts& Questions::alive_texts() { return state_->recording.alive_texts(); }

void Questions::Prepare() {
  Recording& recording = state_->recording;
  recording.held.Prepare();
  recording.phases();
  if (!recording.lanes.empty()) recording.histories.OfStacks(recording, 0);
}

void Questions::PrepareRanges() { state_->recording.kinds(); }

std::vector<uint32_t> Questions::LargestSites(uint32_t lane, uint32_t event) {
  Recording& recording = state_->recording;
  const analysis::Rows& rows = recording.rows();
  std::map<uint32_t, uint64_t> bytes;  // by key
  for (const analysis::RowId row : recording.held.After(event)) {
    if (!recording.IsIn(recording.lanes[lane], row) || rows.death[row] <= event) continue;
    const uint32_t key = recording.frames.Key(rows.stack[row]);
    if (key != 0) bytes[key] += rows.size[row];
  }
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (const auto& [key, held] : bytes) order.emplace_back(held, key);
  std::sort(order.rbegin(), order.rend());
  std::vector<uint32_t> largest;
  for (const auto& [held, key] : order) {
    if (largest.size() == kMaxSites) break;
    largest.push_back(key);
  }
  return largest;
}

absl::StatusOr<BlockDetails> Questions::AnswerBlock(uint32_t row) {
  return DescribeBlock(state_->recording, row);
}

absl::StatusOr<std::vector<StackInfo>> Questions::AnswerStacks(const std::vector<uint32_t>& ids) {
  if (ids.size() > kMaxStacks) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxStacks, " stacks at once"));
  }
  std::vector<StackInfo> stacks;
  for (const uint32_t id : ids) stacks.push_back(state_->recording.frames.Info(id));
  return stacks;
}

absl::StatusOr<SourceText> Questions::AnswerSource(const std::string& path, uint32_t line) {
  return state_->recording.sources.Around(path, line);
}

absl::StatusOr<PassingCurve> Questions::AnswerPassing(uint32_t lane, const Filter& filter,
                                                      const ColumnPeaks& columns) {
  return MakePassingCurve(state_->recording, lane, filter, columns);
}

absl::StatusOr<PredictedCurve> Questions::AnswerPredicted(uint32_t lane,
                                                          const std::string& settings,
                                                          const ColumnPeaks& columns) {
  const Recording& recording = state_->recording;
  if (absl::Status status = recording.Check(lane, 0); !status.ok()) return status;
  return state_->predictions.Curve(recording.lanes[lane].device, settings, columns);
}

absl::StatusOr<FlameTree> Questions::AnswerFlame(const FlameQuery& query) {
  return MakeFlame(state_->recording, query);
}

absl::StatusOr<FlameTree> Questions::AnswerFlame(const FlameQuery& query, Questions& other,
                                                 uint32_t other_lane, uint32_t other_to) {
  return MakeFlame(state_->recording, query, other.state_->recording, other_lane, other_to);
}

absl::StatusOr<Table> Questions::AnswerTable(const TableQuery& query) {
  return MakeTable(state_->recording, query);
}

absl::StatusOr<RangeTable> Questions::AnswerRange(const RangeQuery& query, const ViewIndex* index) {
  return MakeRangeTable(state_->recording, index, query);
}

absl::StatusOr<Segments> Questions::AnswerSegments(uint32_t lane, uint32_t event) {
  return MakeSegments(state_->recording, lane, event);
}

absl::StatusOr<EventPage> Questions::AnswerEvents(const EventsQuery& query) {
  return MakeEventPage(state_->recording, query);
}

absl::StatusOr<Found> Questions::AnswerFind(const Scope& scope, uint32_t after, uint32_t limit) {
  return FindBlocks(state_->recording, scope, after, limit);
}

Alignment Align(const analysis::Examination& base, const analysis::Examination& other) {
  Alignment alignment;
  const auto& left = base.cycles().cycles;
  const auto& right = other.cycles().cycles;
  alignment.by = left.empty() || right.empty() ? Alignment::kTime : Alignment::kStep;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    alignment.steps.emplace_back(left[i].begin, right[i].begin);
  }
  return alignment;
}

}  // namespace gmt::viewer
