#include "answers/advise/advise_answer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "analysis/examination/failures.h"
#include "analysis/text.h"
#include "answers/json.h"

namespace gmt::answers {
namespace {

using analysis::Advice;
using analysis::AdviseReport;
using analysis::Suffices;
using AdviseJson = nlohmann::ordered_json;

AdviseReport Ask(const Recording& recording, const analysis::AdviseOptions& options) {
  const analysis::Examination& examination = recording.examination();
  const analysis::Failures failures = analysis::FindFailures(examination);
  const analysis::LeakReport leaks =
      failures.decisive ? analysis::FindLeaksUntilFailure(
                              examination, recording.trace().failed[*failures.decisive].t_ns)
                        : analysis::FindLeaks(examination);
  const analysis::OomReport oom = analysis::ExplainOom(examination, recording.categories(), leaks);
  return analysis::Advise(examination, recording.categories(), leaks, oom, options);
}

std::string_view WholeText(const Advice& advice) {
  return advice.is_of_reserved ? "reserved at the peak" : "peak";
}
uint64_t WholeOf(const Advice& advice, const AdviseReport& report) {
  return advice.is_of_reserved ? report.reserved_bytes : report.peak_bytes;
}

// For the first line: "saves" follows.
std::string_view TitleOf(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
      {"fix_leak", "fixing the leak"},
      {"set_to_none", "set_to_none after the optimizer's step"},
      {"fused_optimizer", "a fused optimizer"},
      {"single_tensor_optimizer", "an optimizer without foreach"},
      {"allocator_settings", "a setting of the allocator"},
      {"half_precision", "bfloat16"},
      {"attention", "fused attention"},
      {"micro_batch", "smaller micro-batches"},
      {"checkpoint", "checkpointing"},
      {"eight_bit_optimizer", "an 8-bit optimizer"},
      {"shard", "sharding"},
      {"offload_state", "the optimizer's state in host memory"},
      {"in_place", "operators in place"}};
  for (const auto& [key, title] : kTitles) {
    if (key == name) return title;
  }
  return name;
}

std::string WithPlace(const Advice& advice) {
  return advice.where.empty() ? advice.what : advice.what + ": " + advice.where;
}

std::string Peak(const AdviseReport& report) {
  std::string text =
      fmt::format("The peak is {} on GPU {}", Bytes(report.peak_bytes), report.device);
  if (report.peak_phase) text += ", " + analysis::InPhase(*report.peak_phase);
  text += ".\n";
  if (report.reserved_bytes == 0 && !report.capacity_bytes) return text;
  text += report.reserved_bytes > 0
              ? fmt::format("PyTorch reserves {}", Bytes(report.reserved_bytes))
              : fmt::format("The process uses {}", Bytes(report.used_bytes));
  if (report.capacity_bytes)
    text += fmt::format("; the GPU can provide {}", Bytes(*report.capacity_bytes));
  return text + ".\n";
}

std::string Headline(const AdviseReport& report) {
  if (report.is_out_of_memory) {
    if (!report.next) return "The program ran out of memory, and no change is known that helps";
    const Advice& next = report.advice[*report.next];
    return fmt::format("Next: {}: {} ({}){}", next.what, Bytes(next.saved_bytes), next.why,
                       next.suffices == Suffices::kYes       ? ""
                       : next.suffices == Suffices::kPerhaps ? "; perhaps enough"
                                                             : "; not enough alone");
  }
  if (report.has_room) {
    return fmt::format("Nothing is needed: the process uses {} of the {} that GPU {} can provide",
                       Bytes(report.used_bytes), Bytes(*report.capacity_bytes), report.device);
  }
  if (!report.next) return "No change is known that saves 2 % of the peak";
  const Advice& next = report.advice[*report.next];
  return fmt::format("Next: {} saves up to {} of the {} {}{}", TitleOf(next.name),
                     Bytes(next.saved_bytes), Bytes(WholeOf(next, report)), WholeText(next),
                     report.fits != false              ? ""
                     : next.suffices == Suffices::kYes ? ", which is enough"
                                                       : ", not enough alone");
}

// Why, what it costs, and how the number is known.
std::string Details(const Advice& next, const AdviseReport& report) {
  std::string text = fmt::format("Do: {}\n", next.what);
  if (!next.where.empty()) text += fmt::format("Where: {}\n", next.where);
  text += fmt::format("Why: {}.\n", next.why);
  if (next.freed_bytes > next.saved_bytes) {
    text += fmt::format("It frees {} at that moment, but then another moment is the peak.\n",
                        Bytes(next.freed_bytes));
  }
  text += fmt::format("Cost: {}.\nConfidence: {}, ", next.cost, analysis::NameOf(next.confidence));
  if (next.reserved_bytes) {
    const std::string then = Bytes(*next.reserved_bytes), now = Bytes(report.reserved_bytes);
    text += then == now
                ? fmt::format("replayed: PyTorch would still reserve {}.\n", now)
                : fmt::format("replayed: PyTorch would reserve {} instead of {}.\n", then, now);
  } else {
    text += fmt::format("computed{}.\n", report.not_replayable.empty()
                                             ? std::string()
                                             : " without a replay: " + report.not_replayable);
  }
  return text;
}

bool Helps(const Advice& advice) {
  return advice.applies() && advice.saved_bytes + advice.further_bytes > 0;
}

std::string Table(const AdviseReport& report) {
  std::string text = fmt::format("\n{:>10}  {:>10}  {:>10}  {:<10}  {}\n", "saves", "with those",
                                 "reserved", "confidence", "change");
  text += fmt::format("{:>10}  {:>10}  {:>10}\n", "alone", "above", "then");
  for (const Advice& advice : report.advice) {
    if (!Helps(advice)) continue;
    text += fmt::format("{:>10}  {:>10}  {:>10}  {:<10}  {}\n", Bytes(advice.saved_bytes),
                        advice.is_of_reserved ? "" : Bytes(advice.further_bytes),
                        advice.reserved_bytes ? Bytes(*advice.reserved_bytes) : "",
                        analysis::NameOf(advice.confidence), WithPlace(advice));
  }
  if (!report.is_out_of_memory) {
    text += fmt::format("All together: {} instead of {} at the peak.\n",
                        Bytes(report.peak_bytes - report.together_bytes), Bytes(report.peak_bytes));
  }
  text += "\nWhat does not help:\n";
  for (const Advice& advice : report.advice) {
    if (Helps(advice)) continue;
    text += fmt::format("  {}: {}\n", advice.what,
                        advice.applies() ? "frees nothing at the peak" : advice.why_not);
  }
  return text;
}

AdviseJson AdviceJson(const Advice& advice) {
  return {{"name", advice.name},
          {"do", advice.what},
          {"where", OrNull(advice.where)},
          {"applies", advice.applies()},
          {"why", advice.applies() ? advice.why : advice.why_not},
          {"of", advice.is_of_reserved ? "reserved" : "allocated"},
          {"saved_bytes", advice.saved_bytes},
          {"freed_bytes", advice.freed_bytes},
          {"further_bytes", advice.further_bytes},
          {"enough", advice.suffices == Suffices::kYes},
          {"perhaps_enough", advice.suffices != Suffices::kNo},
          {"reserved_bytes", OrNull(advice.reserved_bytes)},
          {"cost", OrNull(advice.cost)},
          {"confidence", analysis::NameOf(advice.confidence)}};
}

}  // namespace

AdviseAnswer::AdviseAnswer(const Recording& recording, AdviseReport report)
    : recording_(recording), report_(std::move(report)) {}

absl::StatusOr<AdviseAnswer> AdviseAnswer::Make(const Recording& recording,
                                                const analysis::AdviseOptions& options) {
  if (options.device) {
    if (absl::Status status = recording.examination().CheckGpu(*options.device); !status.ok())
      return status;
  }
  return AdviseAnswer(recording, Ask(recording, options));
}

std::string AdviseAnswer::Text(const Terminal& terminal, bool all) const {
  if (!report_.refusal.empty())
    return terminal.Bold(fmt::format("No advice: {}", report_.refusal)) + "\n";
  std::string text = terminal.Bold(Headline(report_)) + "\n";
  const bool has_next = report_.next && !report_.is_out_of_memory && !report_.has_room;
  if (has_next) text += Details(report_.advice[*report_.next], report_);
  text += Peak(report_);
  if (report_.has_room && report_.batch_factor && *report_.batch_factor >= 1.5) {
    text += fmt::format("A batch about {:.3g} times as large would fit, with 12 % left.\n",
                        *report_.batch_factor);
  }
  if (all) {
    text += Table(report_);
  } else if (report_.is_out_of_memory) {
    text += fmt::format("Next: gpumemtrace oom {}\n", recording_.path());
  } else {
    text += fmt::format("Next: gpumemtrace advise {} --all\n", recording_.path());
  }
  return text;
}

std::string AdviseAnswer::Json() const {
  AdviseJson json = NewJson("advise", recording_.path());
  json["refused"] = !report_.refusal.empty();
  json["reason"] = OrNull(report_.refusal);
  json["device"] = report_.device;
  json["peak_bytes"] = report_.peak_bytes;
  json["peak_t_ns"] = report_.peak_t_ns;
  json["peak_phase"] =
      report_.peak_phase ? AdviseJson(analysis::NameOf(*report_.peak_phase)) : AdviseJson(nullptr);
  json["reserved_bytes"] = report_.reserved_bytes;
  json["used_bytes"] = report_.used_bytes;
  json["capacity_bytes"] = OrNull(report_.capacity_bytes);
  json["fits"] = OrNull(report_.fits);
  json["out_of_memory"] = report_.is_out_of_memory;
  json["needed"] = !report_.has_room;
  json["batch_factor"] = OrNull(report_.batch_factor);
  json["replayable"] = report_.is_replayable;
  json["not_replayable"] = OrNull(report_.not_replayable);
  json["next"] =
      report_.next ? AdviseJson(report_.advice[*report_.next].name) : AdviseJson(nullptr);
  json["together_bytes"] = report_.together_bytes;
  json["advice"] = AdviseJson::array();
  for (const Advice& advice : report_.advice) json["advice"].push_back(AdviceJson(advice));
  return JsonText(json);
}

}  // namespace gmt::answers
