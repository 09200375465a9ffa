#include "answers/whatif/whatif_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/leaks/leaks.h"
#include "analysis/text.h"
#include "analysis/whatif/changes.h"
#include "answers/json.h"

namespace gmt::answers {
namespace {

using analysis::Reproduction;
using analysis::Scenario;
using analysis::ScenarioResult;

std::string Outcome(const ScenarioResult& result) {
  return result.is_out_of_memory() ? "out of memory" : "fits";
}

// "would reserve 1.62 GiB at the peak instead of 2.10 GiB"
std::string HeadlineOf(const Scenario& scenario, const ScenarioResult& result,
                       const ScenarioResult& recorded, const std::string& device) {
  if (result.is_out_of_memory() && !recorded.is_out_of_memory())
    return fmt::format("{}: would run out of memory on {}", scenario.name, device);
  std::string text = scenario.name + ": ";
  if (recorded.is_out_of_memory()) {
    text += result.is_out_of_memory() ? "would still run out of memory"
                                      : "the request that failed would succeed";
    return text + fmt::format(", with {} reserved on {}", Bytes(result.peak_reserved), device);
  }
  if (result.peak_reserved == recorded.peak_reserved)
    return text + fmt::format("would reserve as much at the peak, {} on {}",
                              Bytes(result.peak_reserved), device);
  return text + fmt::format("would reserve {} at the peak instead of {} on {}",
                            Bytes(result.peak_reserved), Bytes(recorded.peak_reserved), device);
}

std::string ReproductionText(const Reproduction& reproduction) {
  const std::string calls =
      reproduction.segment_events == 0
          ? "there were no segment calls"
          : fmt::format("{} of {} segment calls reproduced", Count(reproduction.reproduced),
                        Count(reproduction.segment_events));
  return calls + fmt::format(", peak {:+.1f} %", reproduction.peak_error * 100);
}

std::string RowText(const Scenario& scenario, const ScenarioResult& result, size_t name_columns) {
  const std::string range = result.low == result.high || result.is_out_of_memory()
                                ? std::string()
                                : fmt::format("{} to {}", Bytes(result.low), Bytes(result.high));
  return fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}  {:>7}  {}\n", scenario.name, name_columns,
                     Bytes(result.peak_reserved), range, Bytes(result.least_reserved),
                     Count(result.retries), Outcome(result));
}

nlohmann::ordered_json ScenarioJson(const Scenario& scenario, const ScenarioResult& result) {
  return {{"name", scenario.name},
          {"peak_reserved_bytes", result.peak_reserved},
          {"low_bytes", result.low},
          {"high_bytes", result.high},
          {"peak_allocated_bytes", result.peak_allocated},
          {"least_reserved_bytes", result.least_reserved},
          {"oom", result.is_out_of_memory()},
          {"retries", result.retries}};
}

}  // namespace

absl::StatusOr<WhatifAnswer> WhatifAnswer::Make(const Recording& recording,
                                                const WhatifOptions& options) {
  WhatifAnswer answer;
  answer.recording_ = &recording;
  const int32_t device = options.device.value_or(recording.examination().MainDevice());
  auto history = analysis::HistoryOf(recording.examination(), device);
  if (!history.ok()) return recording.InFile(history.status());
  answer.history_ = *std::move(history);
  const analysis::AllocatorSettings& recorded = answer.history_.settings;
  answer.scenarios_ = {{"as recorded", recorded, std::nullopt}};
  for (const std::string& text : options.settings) {
    Scenario& scenario = answer.scenarios_.emplace_back(Scenario{text, recorded, std::nullopt});
    if (absl::Status status = scenario.settings.Change(text); !status.ok()) return status;
  }
  for (const uint64_t capacity : options.capacities) {
    answer.scenarios_.push_back({"capacity " + Bytes(capacity), recorded, capacity});
  }
  if (absl::Status status = answer.AddChanges(options); !status.ok())
    return recording.InFile(status);
  answer.reproduction_ = analysis::Reproduce(answer.history_);
  if (!answer.is_refused())
    answer.results_ = analysis::PredictAll(answer.history_, answer.scenarios_);
  return answer;
}

absl::Status WhatifAnswer::AddChanges(const WhatifOptions& options) {
  if (!options.set_to_none && options.without.empty()) return absl::OkStatus();
  const analysis::Examination& examination = recording_->examination();
  const analysis::Changes changes(examination, recording_->categories(), history_.device);
  const auto add = [&](const std::string& name, const auto& apply) -> absl::Status {
    analysis::ProgramChange change(recording_->trace(), history_.device);
    if (absl::Status status = apply(change); !status.ok()) {
      return absl::FailedPreconditionError(
          fmt::format("{}: {}", name, std::string(status.message())));
    }
    scenarios_.push_back({name, history_.settings, std::nullopt,
                          std::make_shared<const analysis::AllocatorHistory>(
                              analysis::ChangedHistory(history_, change))});
    return absl::OkStatus();
  };
  absl::Status status;
  if (options.set_to_none) {
    status.Update(add("set_to_none", [&](analysis::ProgramChange& change) {
      return changes.SetGradientsToNone(change);
    }));
  }
  if (!options.without.empty()) {
    const analysis::LeakReport leaks = analysis::FindLeaks(examination);
    for (const std::string& id : options.without) {
      status.Update(add("without " + id, [&](analysis::ProgramChange& change) {
        for (const analysis::LeakSuspect& suspect : leaks.suspects) {
          if (suspect.id == id) return changes.FixLeak(suspect, change);
        }
        return absl::FailedPreconditionError("`leaks` finds no such leak");
      }));
    }
  }
  return status;
}

std::string WhatifAnswer::Text(const Terminal& terminal) const {
  const std::string device = fmt::format("GPU {}", history_.device);
  if (is_refused()) {
    return terminal.Bold("No prediction: the replay does not agree with the recording") +
           fmt::format("\n{}; 99 % and 3 % are required.\n", ReproductionText(reproduction_));
  }
  size_t best = 0;
  for (size_t i = 1; i < results_.size(); ++i) {
    const auto rank = [&](size_t at) {
      return std::pair(results_[at].is_out_of_memory(), results_[at].peak_reserved);
    };
    if (best == 0 || rank(i) < rank(best)) best = i;
  }
  std::string text;
  if (best == 0) {
    text = fmt::format("As recorded: {} reserved at the peak on {}, {} of it in blocks",
                       Bytes(results_[0].peak_reserved), device, Bytes(results_[0].peak_allocated));
  } else {
    text = HeadlineOf(scenarios_[best], results_[best], results_[0], device);
  }
  text = terminal.Bold(text) + "\n\n";
  size_t columns = 0;
  for (const Scenario& scenario : scenarios_) columns = std::max(columns, scenario.name.size());
  text += fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}  {:>7}\n", "", columns, "reserved",
                      "expected between", "at least", "retries");
  for (size_t i = 0; i < results_.size(); ++i) text += RowText(scenarios_[i], results_[i], columns);
  text += fmt::format("\nThe replay of the recorded settings agrees: {}.\n",
                      ReproductionText(reproduction_));
  const bool is_changed =
      std::any_of(scenarios_.begin(), scenarios_.end(),
                  [](const Scenario& scenario) { return scenario.changed != nullptr; });
  text += is_changed
              ? "Assumed: apart from the change, the program makes the same requests, at the same "
                "times.\n"
              : "Assumed: the program makes the same requests, at the same times.\n";
  if (results_[0].is_out_of_memory())
    text += "What it would have requested after the one that failed is not known.\n";
  if (best == 0 && scenarios_.size() == 1) {
    text += fmt::format("Next: gpumemtrace whatif {} --expandable-segments\n", recording_->path());
  }
  return text;
}

std::string WhatifAnswer::Json() const {
  nlohmann::ordered_json json = NewJson("whatif", recording_->path());
  json["device"] = history_.device;
  json["replay"] = {{"segment_events", reproduction_.segment_events},
                    {"reproduced", reproduction_.reproduced},
                    {"peak_error", reproduction_.peak_error}};
  json["refused"] = is_refused();
  json["capacity_bytes"] = OrNull(history_.capacity);
  json["scenarios"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < results_.size(); ++i)
    json["scenarios"].push_back(ScenarioJson(scenarios_[i], results_[i]));
  return JsonText(json);
}

}  // namespace gmt::answers
