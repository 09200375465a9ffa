#include "answers/whatif/whatif_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/text.h"
#include "answers/json.h"

namespace gmt::answers {
namespace {

using analysis::Reproduction;
using analysis::Scenario;
using analysis::ScenarioResult;

std::string Outcome(const ScenarioResult& result) {
  if (result.failures > 0) return "out of memory";
  return result.fails_later ? "out of memory later" : "fits";
}

// "would reserve 1.62 GiB at the peak instead of 2.10 GiB"
std::string HeadlineOf(const Scenario& scenario, const ScenarioResult& result,
                       const ScenarioResult& recorded, const std::string& device) {
  if (result.is_out_of_memory() && !recorded.is_out_of_memory())
    return fmt::format("{}: would run out of memory on {}", scenario.name, device);
  std::string text = scenario.name + ": ";
  if (recorded.is_out_of_memory()) {
    if (result.failures == 0 && scenario.step_needs > 0) {
      return text + fmt::format("{}; its step needs about {} on {}",
                                result.fails_later ? "only the request that failed would succeed"
                                                   : "the step that failed would succeed",
                                Bytes(scenario.step_needs), device);
    }
    text += result.failures > 0 ? "would still run out of memory"
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
  // The replay ends where the recorded program failed; the rest of its step is only known as a sum.
  const bool is_sum = result.failures == 0 && scenario.step_needs > result.peak_reserved;
  const std::string reserved =
      is_sum ? "~" + Bytes(scenario.step_needs) : Bytes(result.peak_reserved);
  const std::string range = is_sum || result.low == result.high || result.is_out_of_memory()
                                ? std::string()
                                : fmt::format("{} to {}", Bytes(result.low), Bytes(result.high));
  const std::string least = is_sum ? std::string() : Bytes(result.least_reserved);
  return fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}  {:>7}  {}", scenario.name, name_columns,
                     reserved, range, least, Count(result.retries), Outcome(result));
}

// "Calls of the driver, at their recorded cost: as recorded 12.0 ms, max_split_size_mb:512 41.0 ms"
// in lines that fit the terminal; "" if nothing is known but what was recorded.
std::string DriverText(const std::vector<Scenario>& scenarios,
                       const std::vector<ScenarioResult>& results, const Terminal& terminal) {
  if (results[0].driver_ns.value_or(0) == 0) return "";
  std::string text, line = "Calls of the driver, at their recorded cost:";
  size_t known = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].driver_ns) continue;
    const std::string part = fmt::format("{} {} {}", known++ == 0 ? "" : ",", scenarios[i].name,
                                         Duration(static_cast<int64_t>(*results[i].driver_ns)));
    if (line.size() + part.size() > static_cast<size_t>(terminal.width)) {
      text += line + ",\n";
      line = " " + part.substr(1);
    } else {
      line += part;
    }
  }
  return known > 1 ? text + line + "\n" : "";
}

// "large_segment_size_mb is an option of PyTorch 2.11 and later; recorded was 2.6.\n"
std::string VersionText(const std::vector<std::string>& settings,
                        const std::optional<analysis::TorchVersion>& recorded) {
  std::string text;
  for (const std::string& setting : settings) {
    for (const std::string& option : analysis::SplitAllocatorOptions(setting)) {
      const std::string key = option.substr(0, option.find_first_of(":="));
      const auto first = analysis::FirstWithOption(key);
      if (!first || (recorded && *recorded >= *first)) continue;
      text += fmt::format(
          "{} is an option of PyTorch {}.{} and later; {}.\n", key, first->major, first->minor,
          recorded ? fmt::format("recorded was {}.{}", recorded->major, recorded->minor)
                   : "the recorded version is not known");
    }
  }
  if (recorded && *recorded > analysis::kNewestKnownTorch) {
    text += fmt::format("The rules are those of PyTorch up to {}.{}; recorded was {}.{}.\n",
                        analysis::kNewestKnownTorch.major, analysis::kNewestKnownTorch.minor,
                        recorded->major, recorded->minor);
  }
  return text;
}

// "; really 1.52 GiB (predicted +5.2 %)"
std::string RealText(const ScenarioResult& result, const RealRun& real) {
  if (real.is_out_of_memory) return "; really out of memory";
  const auto predicted = static_cast<double>(result.peak_reserved);
  return fmt::format("; really {} (predicted {:+.1f} %)", Bytes(real.peak_reserved),
                     (predicted / static_cast<double>(real.peak_reserved) - 1) * 100);
}

// "A batch of 52 fits H100 80 GB (6.5 times the recorded 8): 74.1 GiB reserved at the peak"
std::string FitText(const FittingBatch& fit, const Scenario& scenario, const ScenarioResult& result,
                    const ScenarioResult& recorded) {
  const analysis::LargestBatch& largest = fit.largest;
  if (largest.batch == 0) {
    return fmt::format(
        "No batch fits {}: {} would not suffice for {}", fit.device.name, Bytes(fit.capacity),
        largest.is_counted ? "a single sample" : "a sixteenth of the recorded batch");
  }
  std::string text = largest.is_counted
                         ? fmt::format("A batch of {} fits {} ({:.3g} times the recorded {})",
                                       Count(largest.batch), fit.device.name, largest.factor(),
                                       Count(largest.recorded))
                         : fmt::format("{:.3g} times the recorded batch fits {}", largest.factor(),
                                       fit.device.name);
  if (scenario.step_needs > 0 && !fit.is_at_most)
    return text + fmt::format(": a step needs about {}", Bytes(scenario.step_needs));
  text += fmt::format(": {} reserved at the peak", Bytes(result.peak_reserved));
  if (result.retries > recorded.retries) {
    text += result.retries == 1 ? std::string(", 1 retry")
                                : fmt::format(", {} retries", Count(result.retries));
  }
  if (largest.is_unlimited) return text + "; a larger one was not tried";
  if (fit.is_at_most) return text + "; at most, because the recorded run failed";
  return text;
}

nlohmann::ordered_json FitJson(const FittingBatch& fit, const Scenario& scenario) {
  const analysis::LargestBatch& largest = fit.largest;
  nlohmann::ordered_json json = {
      {"device", fit.device.name},      {"device_bytes", fit.device.bytes},
      {"capacity_bytes", fit.capacity}, {"batch", nullptr},
      {"factor", largest.factor()},     {"scenario", scenario.name}};
  if (largest.is_counted) json["batch"] = largest.batch;
  return json;
}

nlohmann::ordered_json InputsJson(const std::optional<analysis::BatchFacts>& inputs) {
  if (!inputs) return nullptr;
  return {{"shape", inputs->input_shape},
          {"dtype", inputs->input_dtype},
          {"samples", inputs->samples},
          {"tokens", inputs->tokens}};
}

nlohmann::ordered_json RealJson(const RealRun& real) {
  return {{"peak_reserved_bytes", real.peak_reserved}, {"oom", real.is_out_of_memory}};
}

nlohmann::ordered_json ScenarioJson(const Scenario& scenario, const ScenarioResult& result) {
  return {{"name", scenario.name},
          {"peak_reserved_bytes", result.peak_reserved},
          {"low_bytes", result.low},
          {"high_bytes", result.high},
          {"peak_allocated_bytes", result.peak_allocated},
          {"least_reserved_bytes", result.least_reserved},
          {"oom", result.is_out_of_memory()},
          {"step_needs_bytes",
           scenario.step_needs > 0 ? nlohmann::ordered_json(scenario.step_needs) : nullptr},
          {"retries", result.retries},
          {"driver_calls", result.driver_calls},
          {"driver_ns", OrNull(result.driver_ns)}};
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
  answer.settings_ = options.settings;
  const analysis::AllocatorSettings& recorded = answer.history_.settings;
  const FailedStep failed(recording, answer.history_);
  const uint64_t needs = failed.Needs(1);
  answer.scenarios_ = {{"as recorded", recorded, std::nullopt, nullptr, needs}};
  for (const std::string& text : options.settings) {
    Scenario& scenario =
        answer.scenarios_.emplace_back(Scenario{text, recorded, std::nullopt, nullptr, needs});
    if (absl::Status status = scenario.settings.Change(text, answer.history_.torch); !status.ok())
      return status;
  }
  for (const uint64_t capacity : options.capacities) {
    answer.scenarios_.push_back(
        {"capacity " + Bytes(capacity), recorded, capacity, nullptr, needs});
  }
  answer.reproduction_ = analysis::Reproduce(answer.history_);
  if (answer.is_refused()) return answer;
  ProgramScenarios program(recording, answer.history_, failed);
  if (absl::Status status = program.Add(options.program, &answer.scenarios_); !status.ok())
    return recording.InFile(status);
  answer.inputs_ = program.inputs();
  answer.fits_ = program.fits();
  answer.results_ = analysis::PredictAll(answer.history_, answer.scenarios_);
  return answer;
}

absl::Status WhatifAnswer::Verify(const RunSettings& run) {
  for (size_t i = 1; i < results_.size(); ++i) {
    if (scenarios_[i].changed != nullptr || scenarios_[i].capacity) continue;
    const auto real = run(scenarios_[i].name);
    if (!real.ok()) return real.status();
    real_[i] = *real;
  }
  return absl::OkStatus();
}

std::string WhatifAnswer::Headline() const {
  if (!fits_.empty()) {
    const size_t scenario = fits_.front().scenario;
    return FitText(fits_.front(), scenarios_[scenario], results_[scenario], results_[0]);
  }
  const std::string device = fmt::format("GPU {}", history_.device);
  size_t best = 0;
  for (size_t i = 1; i < results_.size(); ++i) {
    const auto rank = [&](size_t at) {
      return std::pair(results_[at].is_out_of_memory(), results_[at].peak_reserved);
    };
    if (best == 0 || rank(i) < rank(best)) best = i;
  }
  if (best > 0) return HeadlineOf(scenarios_[best], results_[best], results_[0], device);
  return fmt::format("As recorded: {} reserved at the peak on {}, {} of it in blocks",
                     Bytes(results_[0].peak_reserved), device, Bytes(results_[0].peak_allocated));
}

std::string WhatifAnswer::Assumptions() const {
  std::string text;
  if (inputs_) {
    text += fmt::format(
        "Recorded inputs of a forward pass: {} {}, {} samples{}.\n", inputs_->input_shape,
        inputs_->input_dtype, Count(inputs_->samples),
        inputs_->tokens > 0 ? fmt::format(" of {} tokens", Count(inputs_->tokens)) : std::string());
  }
  const bool without_contexts =
      std::any_of(fits_.begin(), fits_.end(),
                  [](const FittingBatch& fit) { return fit.capacity == fit.device.bytes; });
  if (without_contexts)
    text += "The memory of contexts and other processes is not known, and counted as none.\n";
  const bool is_changed =
      std::any_of(scenarios_.begin(), scenarios_.end(),
                  [](const Scenario& scenario) { return scenario.changed != nullptr; });
  text += is_changed
              ? "Assumed: apart from the change, the program makes the same requests, at the same "
                "times.\n"
              : "Assumed: the program makes the same requests, at the same times.\n";
  if (results_[0].is_out_of_memory()) {
    const bool is_known =
        std::any_of(scenarios_.begin() + 1, scenarios_.end(),
                    [](const Scenario& scenario) { return scenario.step_needs > 0; });
    text += is_known ? fmt::format(
                           "The step that failed would have needed about {}: gpumemtrace oom {}\n",
                           Bytes(scenarios_[0].step_needs), recording_->path())
                     : "What it would have requested after the one that failed is not known.\n";
  }
  return text;
}

std::string WhatifAnswer::Text(const Terminal& terminal) const {
  if (is_refused()) {
    return terminal.Bold("No prediction: the replay does not agree with the recording") +
           fmt::format("\n{}; 99 % and 3 % are required.\n", ReproductionText(reproduction_));
  }
  std::string text = terminal.Bold(Headline()) + "\n\n";
  size_t columns = 0;
  for (const Scenario& scenario : scenarios_) columns = std::max(columns, scenario.name.size());
  text += fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}  {:>7}\n", "", columns, "reserved",
                      "expected between", "at least", "retries");
  for (size_t i = 0; i < results_.size(); ++i) {
    text += RowText(scenarios_[i], results_[i], columns);
    const auto real = real_.find(i);
    if (real != real_.end()) text += RealText(results_[i], real->second);
    text += "\n";
  }
  text += "\n" + DriverText(scenarios_, results_, terminal);
  text += fmt::format("The replay of the recorded settings agrees: {}.\n",
                      ReproductionText(reproduction_));
  text += VersionText(settings_, history_.torch);
  text += Assumptions();
  if (scenarios_.size() == 1) {
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
  for (size_t i = 0; i < results_.size(); ++i) {
    nlohmann::ordered_json scenario = ScenarioJson(scenarios_[i], results_[i]);
    if (const auto real = real_.find(i); real != real_.end())
      scenario["verified"] = RealJson(real->second);
    json["scenarios"].push_back(std::move(scenario));
  }
  json["inputs"] = InputsJson(inputs_);
  json["fits"] = nlohmann::ordered_json::array();
  for (const FittingBatch& fit : fits_)
    json["fits"].push_back(FitJson(fit, scenarios_[fit.scenario]));
  return JsonText(json);
}

}  // namespace gmt::answers
