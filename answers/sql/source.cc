#include "answers/sql/source.h"

#include "answers/stacks/stack_text.h"

namespace gmt::answers::sql {

using analysis::RowId;
using analysis::Rows;
using analysis::Step;

const std::string& Source::StackLine(uint32_t stack) {
  const uint32_t count = recording_.definitions().stack_count();
  if (stack > count) stack = 0;  // unknown
  if (stack_lines_.empty()) stack_lines_.resize(size_t{count} + 1);
  std::optional<std::string>& line = stack_lines_[stack];
  if (!line) {
    const auto& frames = recording_.examination().stacks().Frames(stack);
    line = frames.empty() ? "" : answers::StackLine(frames, kStackLabelWidth);
  }
  return *line;
}

const std::vector<uint32_t>& Source::stacks() {
  if (stacks_) return *stacks_;
  std::vector<bool> used(size_t{recording_.definitions().stack_count()} + 1);
  const auto add = [&used](uint32_t stack) {
    if (stack < used.size()) used[stack] = true;
  };
  const Rows& rows = trace().rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    add(rows.stack[row]);
    add(rows.forward_stack[row]);
    add(rows.FreeStack(row));
  }
  for (const auto& failed : trace().failed) add(failed.stack), add(failed.forward_stack);
  for (const auto& mark : trace().marks) add(mark.stack);
  for (const auto& range : trace().ranges) add(range.stack);
  for (const auto& role : trace().role_changes) add(role.stack);
  stacks_.emplace();
  for (uint32_t stack = 1; stack < used.size(); ++stack) {
    if (used[stack]) stacks_->push_back(stack);
  }
  return *stacks_;
}

const std::vector<uint64_t>& Source::first_frames() {
  if (first_frames_) return *first_frames_;
  uint64_t next = 0;
  first_frames_.emplace();
  for (const uint32_t stack : stacks()) {
    first_frames_->push_back(next);
    next += recording_.examination().stacks().Frames(stack).size();
  }
  first_frames_->push_back(next);
  return *first_frames_;
}

const std::vector<Source::StepUse>& Source::step_uses() {
  if (step_uses_) return *step_uses_;
  const analysis::Cycles& cycles = recording_.examination().cycles();
  step_uses_.emplace();
  for (uint32_t step = 0; step < cycles.cycles.size(); ++step) {
    for (uint32_t device = 0; device < cycles.devices.size(); ++device)
      step_uses_->push_back({step, device});
  }
  return *step_uses_;
}

const std::vector<Source::PhaseRow>& Source::phases() {
  if (phases_) return *phases_;
  const analysis::Cycles& cycles = recording_.examination().cycles();
  phases_.emplace();
  for (const StepUse& use : step_uses()) {
    for (uint32_t phase = 0; phase < analysis::kPhases; ++phase) {
      if (cycles.devices[use.device].cycles[use.step].phases[phase].present)
        phases_->push_back({use, phase});
    }
  }
  return *phases_;
}

const std::vector<Source::CategoryRow>& Source::categories() {
  if (categories_) return *categories_;
  categories_.emplace();
  const analysis::Examination& examination = recording_.examination();
  for (const auto& [device, totals] : examination.replay().devices()) {
    const Step step = totals.bytes.peak_step;
    for (analysis::CategoryUse& use :
         analysis::CategoriesAt(examination, recording_.categories(), device, step)) {
      categories_->push_back({device, trace().TimeOf(step), std::move(use)});
    }
  }
  return *categories_;
}

}  // namespace gmt::answers::sql
