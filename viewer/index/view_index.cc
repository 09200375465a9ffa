#include "viewer/index/view_index.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"
#include "viewer/index/index_builder.h"
#include "viewer/index/index_parts.h"
#include "viewer/index/names.h"
#include "viewer/index/parallel_for.h"
#include "viewer/index/select_blocks.h"
#include "viewer/index/select_curve.h"

namespace gmt::viewer {
namespace {

using Stage = ViewIndex::Stage;

// The fraction of the total work after building the curves.
constexpr double kCurvesShare = 0.2;

absl::Status Check(const Window& window, const IndexParts& parts, Stage stage) {
  if (stage < Stage::kCurves) {
    return absl::UnavailableError("the recording is still being read");
  }
  if (window.lane >= parts.lanes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no lane ", window.lane));
  }
  if (window.columns == 0 || window.columns > kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrCat("columns must be 1 to ", kMaxColumns, ", not ", window.columns));
  }
  if (!std::isfinite(window.from) || !std::isfinite(window.to) || window.from >= window.to) {
    return absl::InvalidArgumentError("`from` must lie before `to`");
  }
  if (window.axis != Axis::kStep) return absl::OkStatus();
  if (stage < Stage::kBlocks) {
    return absl::UnavailableError("the steps of the training loop are not known yet");
  }
  if (!parts.axes.has_steps()) {
    return absl::InvalidArgumentError("no steps of a training loop were seen in this recording");
  }
  return absl::OkStatus();
}

absl::Status Check(const BlockQuery& query, const IndexParts& parts, Stage stage) {
  if (const absl::Status status = Check(query.window, parts, stage); !status.ok()) return status;
  if (stage < Stage::kBlocks) return absl::UnavailableError("blocks are still being sorted");
  if (!std::isfinite(query.low) || !std::isfinite(query.high) || query.low >= query.high) {
    return absl::InvalidArgumentError("`low` must lie below `high`");
  }
  if (query.rows == 0) return absl::InvalidArgumentError("`rows` must be at least 1");
  return absl::OkStatus();
}

// Describes each stack without keeping the text, which takes hundreds of megabytes for a long run.
std::vector<uint32_t> KeysOf(const analysis::Examination& examination) {
  const analysis::Rows& rows = examination.trace().rows;
  std::vector<bool> is_used(examination.definitions().stack_count() + size_t{1});
  for (uint32_t row = 0; row < rows.count(); ++row) {
    if (rows.stack[row] < is_used.size()) is_used[rows.stack[row]] = true;
  }
  std::vector<uint32_t> keys(is_used.size());
  for (uint32_t stack = 1; stack < keys.size(); ++stack) {
    if (!is_used[stack]) continue;
    const std::vector<analysis::FrameText> frames =
        analysis::DescribeStack(examination.definitions(), stack, examination.rules());
    const auto frame = [&](int i) { return i < 0 ? nullptr : &frames[static_cast<size_t>(i)]; };
    keys[stack] = SiteKey(frame(analysis::OwnFrame(frames)), frame(analysis::LibraryFrame(frames)));
  }
  return keys;
}

}  // namespace

ViewIndex::ViewIndex() : parts_(std::make_unique<IndexParts>()) {}
ViewIndex::~ViewIndex() = default;

std::unique_ptr<ViewIndex> ViewIndex::FromParts(std::unique_ptr<IndexParts> parts) {
  auto index = std::make_unique<ViewIndex>();
  index->parts_ = std::move(parts);
  index->Reach(Stage::kReady);
  return index;
}

void ViewIndex::Build(const analysis::Examination& examination, std::mutex& examining,
                      const Progress& progress) {
  BuildCurves(examination.trace(), progress);
  const auto find_steps = [&]() -> const analysis::Cycles& {
    const std::lock_guard lock(examining);
    return examination.cycles();
  };
  BuildBlocks(examination, find_steps, progress);
}

void ViewIndex::BuildCurves(const analysis::Trace& trace, const Progress& progress) {
  builder_ = std::make_unique<IndexBuilder>(trace, *parts_);
  progress("drawing curves", 0);
  builder_->BuildCurves([&](double share) { progress("drawing curves", kCurvesShare * share); });
  Reach(Stage::kCurves);
}

void ViewIndex::BuildBlocks(const analysis::Examination& examination, const StepFinder& find_steps,
                            const Progress& progress) {
  IndexBuilder& builder = *builder_;
  progress("sorting blocks", kCurvesShare);
  std::vector<std::function<void()>> tasks;  // longest first
  tasks.push_back([&builder] { builder.BuildOrder(Axis::kTime); });
  tasks.push_back([&builder] { builder.BuildOrder(Axis::kEvent); });
  tasks.push_back([&] {
    builder.BuildSteps(find_steps());
    if (parts_->axes.has_steps()) builder.BuildOrder(Axis::kStep);
  });
  tasks.push_back([&] { builder.BuildSpaces(); });
  for (std::function<void()>& task : builder.ColumnTasks(examination.definitions()))
    tasks.push_back(std::move(task));
  tasks.push_back([&] { parts_->blocks.key_of_stack = KeysOf(examination); });
  ParallelFor(tasks, [&](size_t ended) {
    const double share = static_cast<double>(ended) / static_cast<double>(tasks.size());
    progress("sorting blocks", kCurvesShare + (1 - kCurvesShare) * share);
  });
  builder_.reset();
  Reach(Stage::kBlocks);
}

void ViewIndex::AddCategories(const analysis::Trace& trace, const analysis::Categories& categories,
                              const analysis::AliveTexts& alive) {
  BuildCategories(trace, categories, alive, *parts_);
  Reach(Stage::kReady);
}

const std::vector<Lane>& ViewIndex::lanes() const { return parts_->lanes; }
std::optional<uint64_t> ViewIndex::PeakReserved(uint32_t lane) const {
  const uint32_t curve = parts_->reserved_curve[lane];
  if (curve >= parts_->curves.size()) return std::nullopt;
  return parts_->curves[curve].peak();
}
uint32_t ViewIndex::events() const { return parts_->events; }
int64_t ViewIndex::end_ns() const { return parts_->axes.end_ns(); }
const std::vector<std::string>& ViewIndex::streams() const { return parts_->streams; }
const std::vector<std::string>& ViewIndex::threads() const { return parts_->threads; }
const std::vector<std::string>& ViewIndex::dtypes() const { return parts_->dtypes; }
bool ViewIndex::has_steps() const { return parts_->axes.has_steps(); }

absl::StatusOr<CurveTile> ViewIndex::SelectCurve(const Window& window) const {
  const Stage reached = stage();
  if (const absl::Status status = Check(window, *parts_, reached); !status.ok()) return status;
  return SelectCurveOf(*parts_, window, reached == Stage::kReady);
}

absl::StatusOr<ColumnPeaks> ViewIndex::SelectPeaks(const Window& window) const {
  if (const absl::Status status = Check(window, *parts_, stage()); !status.ok()) return status;
  ColumnEvents columns = FindColumnEvents(*parts_, window);
  return ColumnPeaks{std::move(columns.peak), std::move(columns.is_known), std::move(columns.first),
                     std::move(columns.last)};
}

absl::StatusOr<BlockTile> ViewIndex::SelectBlocks(const BlockQuery& query,
                                                  const SelectLimits& limits) const {
  const Stage reached = stage();
  if (const absl::Status status = Check(query, *parts_, reached); !status.ok()) return status;
  return SelectBlocksOf(*parts_, query, limits, reached == Stage::kReady);
}

double ViewIndex::PositionOf(Axis axis, uint32_t event) const {
  return parts_->axes.PositionOf(axis, event);
}

uint32_t ViewIndex::EventAt(Axis axis, double position) const {
  return parts_->axes.EventAt(axis, position);
}

uint8_t ViewIndex::DurationClassOf(Axis axis, uint32_t birth, uint32_t death) const {
  return ClassOf(parts_->axes, axis, birth, death);
}

const PackedColumn& ViewIndex::places() const { return parts_->blocks.place; }

std::optional<double> ViewIndex::PlaceOf(uint32_t row) const {
  const uint64_t place = places()[row];
  return place == 0 ? std::nullopt : std::optional(static_cast<double>(place) - 1);
}

}  // namespace gmt::viewer
