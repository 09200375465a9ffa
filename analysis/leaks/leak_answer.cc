#include "analysis/leaks/leak_answer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "analysis/leaks/leak_state.h"
#include "analysis/text.h"
#include "proto/leaks.pb.h"

namespace gmt::analysis {
namespace {

constexpr size_t kMaxSuspects = 16, kMaxBenign = 16, kMaxFrames = 24, kMaxStacks = 256;

gmt::LeakAnswer::Verdict VerdictOf(const LeakReport& report) {
  if (!report.enough) return gmt::LeakAnswer::TOO_EARLY;
  if (report.suspects.empty()) return gmt::LeakAnswer::NO_LEAK;
  switch (report.suspects.front().tier) {
    case LeakTier::kPossible:
      return gmt::LeakAnswer::POSSIBLE;
    case LeakTier::kLikely:
      return gmt::LeakAnswer::LIKELY;
    case LeakTier::kLeak:
      return gmt::LeakAnswer::LEAK;
  }
  return gmt::LeakAnswer::POSSIBLE;
}

std::string PlaceOf(const LeakSuspect& suspect) {
  if (!suspect.common_frame) return suspect.library;
  const std::string place = suspect.common_frame->Place();
  return place.empty() ? suspect.common_frame->Name() : place;
}

std::string TextOf(const LeakReport& report) {
  const std::string unit = report.cycles.clear || report.cycles.count == 0 ? "step" : "part";
  if (!report.enough) {
    return absl::StrCat("too early to tell: ", Plural(report.cycles.count, unit.c_str()),
                        " watched, a verdict needs ", report.cycles_needed);
  }
  if (report.suspects.empty()) return "no leak: no stack keeps growing";
  const LeakSuspect& first = report.suspects.front();
  const std::string word = first.tier == LeakTier::kLeak     ? "leak"
                           : first.tier == LeakTier::kLikely ? "likely a leak"
                                                             : "possibly a leak";
  const std::string device =
      first.device == kHostDevice ? "the host" : absl::StrCat("GPU ", first.device);
  const std::string place = PlaceOf(first);
  return absl::StrCat(word, ": ", Bytes(Whole(first.bytes_per_cycle)), " per ", unit, " on ",
                      device, place.empty() ? "" : " at ", place, ", ", Bytes(first.bytes),
                      " so far");
}

void SetSuspect(const LeakSuspect& suspect, StackTexts& texts, gmt::LeakSuspect* message) {
  message->set_id(suspect.id);
  message->set_tier(std::string(NameOf(suspect.tier)));
  message->set_kind(std::string(NameOf(suspect.kind)));
  message->set_device(suspect.device);
  message->set_heap(suspect.heap);
  gmt::LeakTrend* trend = message->mutable_bytes_per_cycle();
  trend->set_slope(suspect.bytes_per_cycle);
  trend->set_low(suspect.low_bytes_per_cycle);
  trend->set_high(suspect.high_bytes_per_cycle);
  message->set_bytes(suspect.bytes);
  message->set_count(suspect.count);
  message->set_since_cycle(suspect.since_cycle);
  message->set_reason(suspect.reason);
  message->set_place(PlaceOf(suspect));
  if (suspect.common_frame) message->set_function(suspect.common_frame->Name());
  for (size_t i = 0; i < std::min(suspect.stacks.size(), kMaxStacks); ++i)
    message->add_stacks(suspect.stacks[i].stack);
  if (!suspect.stacks.empty()) {
    const LeakStack& first = suspect.stacks.front();
    const uint32_t origin = first.forward_stack != 0 ? first.forward_stack : first.stack;
    for (const FrameText& frame : WithoutNoise(texts.Frames(origin))) {
      if (static_cast<size_t>(message->frames_size()) == kMaxFrames) break;
      const std::string place = frame.Place();
      message->add_frames(place.empty() ? frame.Name()
                                        : absl::StrCat(frame.Name(), " (", place, ")"));
    }
  }
  if (suspect.eta_ns) message->set_eta_ns(*suspect.eta_ns);
  if (suspect.low_eta_ns) message->set_low_eta_ns(*suspect.low_eta_ns);
  if (suspect.high_eta_ns) message->set_high_eta_ns(*suspect.high_eta_ns);
}

}  // namespace

gmt::LeakAnswer AnswerOf(const LeakReport& report, StackTexts& texts, int64_t t_ns) {
  gmt::LeakAnswer answer;
  answer.set_verdict(VerdictOf(report));
  answer.set_text(TextOf(report));
  *answer.mutable_cycles() = InfoOf(report.cycles, report.watched_ns);
  answer.set_cycles_for_likely(kCyclesForLikely);
  answer.set_cycles_for_leak(kCyclesForLeak);
  for (size_t i = 0; i < std::min(report.suspects.size(), kMaxSuspects); ++i)
    SetSuspect(report.suspects[i], texts, answer.add_suspects());
  answer.set_suspects_in_all(report.suspects.size());
  for (size_t i = 0; i < std::min(report.benign.size(), kMaxBenign); ++i) {
    gmt::LeakBenign* benign = answer.add_benign();
    benign->set_label(report.benign[i].label);
    benign->set_bytes(report.benign[i].bytes);
    if (report.benign[i].frame) benign->set_place(report.benign[i].frame->Place());
  }
  for (const CycleMinima& minima : report.minima) *answer.add_minima() = MessageOf(minima);
  for (const HeldBefore& before : report.before) *answer.add_before() = MessageOf(before);
  answer.set_t_ns(t_ns);
  return answer;
}

}  // namespace gmt::analysis
