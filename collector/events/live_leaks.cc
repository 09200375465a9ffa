#include "collector/events/live_leaks.h"

#include <algorithm>

#include "analysis/leaks/leak_answer.h"
#include "analysis/leaks/leak_state.h"

namespace gmt::collector {
namespace {

constexpr int kRest = 50;  // pause after an answer, as a multiple of its duration
constexpr std::chrono::milliseconds kMinRest{500};
// With this many waiting events, they are processed without a flush; names may then come late.
constexpr size_t kMaxWaitingEvents = 1 << 16;

bool IsOfInterest(gmt::Kind kind) {
  switch (kind) {
    case gmt::THREAD:
    case gmt::COPY:
    case gmt::WITNESS:
    case gmt::SOURCE_CHANGE:
    case gmt::DEVICE_NAME:
    case gmt::MODULE_ACTION:
    case gmt::ROLE:
    case gmt::SNAPSHOT_TAKEN:
      return false;
    default:
      return true;
  }
}

}  // namespace

void LiveLeaks::OnDefinitions(const gmt::Definitions& definitions) {
  // If definitions cannot be added, stacks lack names, but nothing else fails.
  definitions_.Add(definitions).IgnoreError();
}

void LiveLeaks::OnSymbols(const gmt::Symbols& symbols) { definitions_.Add(symbols).IgnoreError(); }

void LiveLeaks::OnEvent(const format::Event& event) {
  if (!IsOfInterest(event.kind)) return;
  waiting_.push_back(event);
  if (waiting_.size() >= kMaxWaitingEvents) OnFlush();
}

void LiveLeaks::OnEvent(const format::Event& event, const gmt::Sample& sample) {
  waiting_.push_back(event);
  waiting_.back().detail = static_cast<uint32_t>(samples_.size());
  samples_.push_back(sample);
}

void LiveLeaks::OnFlush() {
  for (const format::Event& event : waiting_) {
    now_ns_ = std::max(now_ns_, event.t_ns);
    event.kind == gmt::SAMPLE ? watcher_.OnSample(event, samples_[event.detail])
                              : watcher_.OnEvent(event);
  }
  waiting_.clear();
  samples_.clear();
}

gmt::LeakAnswer LiveLeaks::Answer() {
  const Clock::time_point began = Clock::now();
  if (began < answer_again_) return answer_;
  analysis::StackTexts texts(definitions_);
  answer_ = analysis::AnswerOf(analysis::ConcludeLeaks(watcher_.Evidence(), texts), texts, now_ns_);
  const Clock::time_point ended = Clock::now();
  answer_again_ = ended + std::max<Clock::duration>(kMinRest, (ended - began) * kRest);
  return answer_;
}

gmt::LeakState LiveLeaks::State() {
  OnFlush();
  return analysis::StateOf(watcher_.Evidence());
}

}  // namespace gmt::collector
