#include "cli/live/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"
#include "analysis/text.h"
#include "answers/json.h"
#include "answers/leaks/leaks_answer.h"
#include "answers/leaks/leaks_text.h"
#include "cli/command.h"
#include "cli/open_recording.h"

namespace gmt::cli {
namespace {

using Json = nlohmann::ordered_json;
using gmt::LeakAnswer;

constexpr int64_t kSecond = 1'000'000'000, kMinute = 60 * kSecond;

std::string_view NameOf(LeakAnswer::Verdict verdict) {
  switch (verdict) {
    case LeakAnswer::NO_LEAK:
      return "no_leak";
    case LeakAnswer::POSSIBLE:
      return "possible";
    case LeakAnswer::LIKELY:
      return "likely";
    case LeakAnswer::LEAK:
      return "leak";
    default:
      return "too_early";
  }
}

std::string Unit(const LeakAnswer& answer) {
  return answer.cycles().clear() || answer.cycles().count() == 0 ? "step" : "part";
}

std::string NameOfHeap(const std::string& heap) {
  if (heap == "pytorch") return "PyTorch's blocks";
  if (heap == "host") return "pinned host memory";
  if (heap.empty()) return "other memory of the device";
  return fmt::format("{} memory outside the allocator", heap);
}

// Returns "in about 3 h (2 h 40 m - 3 h 25 m)".
std::string Outlook(const gmt::LeakSuspect& suspect) {
  std::string text = fmt::format("in about {}", Duration(suspect.eta_ns()));
  if (suspect.has_low_eta_ns() && suspect.has_high_eta_ns())
    text +=
        fmt::format(" ({} - {})", Duration(suspect.low_eta_ns()), Duration(suspect.high_eta_ns()));
  return text;
}

Json TrendJson(const gmt::LeakTrend& trend) {
  return {{"slope", trend.slope()}, {"low", trend.low()}, {"high", trend.high()}};
}

Json SuspectJson(const gmt::LeakSuspect& suspect) {
  Json json = {{"id", suspect.id()},
               {"tier", suspect.tier()},
               {"kind", suspect.kind()},
               {"device", suspect.device() < 0 ? Json() : Json(suspect.device())},
               {"bytes_per_cycle", TrendJson(suspect.bytes_per_cycle())},
               {"bytes", suspect.bytes()},
               {"count", suspect.count()},
               {"since_cycle", suspect.since_cycle()},
               {"place", suspect.place().empty() ? Json() : Json(suspect.place())},
               {"function", suspect.function().empty() ? Json() : Json(suspect.function())},
               {"reason", suspect.reason()},
               {"frames", Json::array()},
               {"eta_ns", suspect.has_eta_ns() ? Json(suspect.eta_ns()) : Json()}};
  for (const std::string& frame : suspect.frames()) json["frames"].push_back(frame);
  return json;
}

// Prints the text in one piece. Several threads may watch a process each.
void PrintWhole(const std::string& text) {
  static std::mutex& printing = *new std::mutex;
  const std::lock_guard lock(printing);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::string BeforeAttachText(const LeakAnswer& answer) {
  std::string parts;
  for (const gmt::LeakBefore& before : answer.before()) {
    if (before.bytes() == 0) continue;
    if (!parts.empty()) parts += ", ";
    parts += fmt::format("{} in {}", Bytes(before.bytes()), NameOfHeap(before.heap()));
    if (before.blocks() > 0) parts += fmt::format(" ({})", Plural(before.blocks(), "block"));
    if (before.device() > 0) parts += fmt::format(" on GPU {}", before.device());
  }
  return parts.empty() ? "" : "before attach: " + parts;
}

std::string WatchText::Line(const LeakAnswer& answer, int64_t elapsed_ns) const {
  std::string line = fmt::format(
      "[{:>6}] {} watched; {}", Duration(elapsed_ns / kSecond * kSecond),
      Plural(answer.cycles().count(), Unit(answer).c_str()),
      answer.verdict() == LeakAnswer::TOO_EARLY
          ? fmt::format("a verdict needs {}: too early to tell", answer.cycles_for_likely())
          : answer.text());
  if (answer.suspects_size() > 0 && answer.suspects(0).has_eta_ns() &&
      answer.verdict() >= LeakAnswer::LIKELY)
    line += fmt::format("; GPU {} is full {}", answer.suspects(0).device(),
                        Outlook(answer.suspects(0)));
  return line;
}

std::string WatchText::Json(const LeakAnswer& answer, int64_t elapsed_ns) const {
  nlohmann::ordered_json json = answers::NewJson("watch", options_.recording);
  json["pid"] = options_.pid;
  json["elapsed_ns"] = elapsed_ns;
  json["verdict"] = NameOf(answer.verdict());
  json["text"] = answer.text();
  json["cycles"] = {{"count", answer.cycles().count()},
                    {"source", answer.cycles().source()},
                    {"period_ns", answer.cycles().period_ns()},
                    {"inferred", answer.cycles().inferred()},
                    {"clear", answer.cycles().clear()}};
  json["cycles_needed"] = answer.cycles_for_likely();
  json["suspects"] = nlohmann::ordered_json::array();
  for (const gmt::LeakSuspect& suspect : answer.suspects())
    json["suspects"].push_back(SuspectJson(suspect));
  json["before"] = nlohmann::ordered_json::array();
  for (const gmt::LeakBefore& before : answer.before()) {
    json["before"].push_back(
        {{"device",
          before.device() < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(before.device())},
         {"heap",
          before.heap().empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(before.heap())},
         {"bytes", before.bytes()},
         {"blocks", before.blocks()},
         {"freed_bytes", before.freed_bytes()},
         {"unknown_freed_bytes", before.unknown_freed_bytes()}});
  }
  return answers::JsonText(json, -1);
}

// A line is kept if it says something new. Without a terminal, which cannot rewrite it, also every
// minute.
std::string WatchText::OnAnswer(const LeakAnswer& answer, int64_t elapsed_ns) {
  const bool is_news = !last_ || last_->verdict() != answer.verdict() ||
                       (answer.suspects_size() > 0) != (last_->suspects_size() > 0);
  last_ = answer;
  if (options_.json) return Json(answer, elapsed_ns);
  std::string text;
  if (!printed_before_attach_) {
    const std::string before = BeforeAttachText(answer);
    printed_before_attach_ = !before.empty();
    if (printed_before_attach_) text += (line_open_ ? "\r\033[K" : "") + before + "\n";
    if (printed_before_attach_) line_open_ = false;
  }
  if (options_.terminal.is_terminal) {
    text += line_open_ ? "\r\033[K" : "";
    text += Shortened(Line(answer, elapsed_ns), static_cast<size_t>(options_.terminal.width - 1));
    line_open_ = !is_news;
    return text + (is_news ? "\n" : "");
  }
  if (!is_news && elapsed_ns - printed_ns_ < kMinute) return text;
  printed_ns_ = elapsed_ns;
  return text + Line(answer, elapsed_ns) + "\n";
}

std::string WatchText::AtEnd(int64_t elapsed_ns) {
  std::string text = std::exchange(line_open_, false) ? "\n" : "";
  if (options_.json) return "";
  if (!last_) return text + "The collector sent nothing: the program made no recorded call.\n";
  if (last_->verdict() != LeakAnswer::TOO_EARLY) return text;
  const uint64_t count = last_->cycles().count(), needed = last_->cycles_for_likely();
  if (count == 0) {
    return text + fmt::format(
                      "No steps were found in {}: the program allocated too little, or does "
                      "not repeat the same work.\n",
                      Duration(elapsed_ns));
  }
  const double period = static_cast<double>(elapsed_ns) / static_cast<double>(count);
  const auto missing = static_cast<int64_t>(period * static_cast<double>(needed - count));
  // A little more than the missing time, in whole minutes.
  const int64_t whole = (elapsed_ns + missing + missing / 10) / kMinute + 1;
  return text + fmt::format("{} of {} {}s: about {} more; run: gpumemtrace attach {} --watch {}m\n",
                            Count(count), needed, Unit(*last_), Duration(missing), options_.pid,
                            whole);
}

std::string WithLabel(const std::string& label, const std::string& text) {
  if (label.empty()) return text;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    result += label + ": " + text.substr(at, end - at);
    at = end;
  }
  return result;
}

absl::StatusOr<int> Watch(const WatchOptions& options, const Subscribe& subscribe) {
  const auto began = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                began)
        .count();
  };
  WatchText text(options);
  absl::Status refused;
  const auto print = [&](const std::string& what) {
    PrintWhole(options.json ? what : WithLabel(options.label, what));
  };
  const absl::Status status = subscribe([&](const control::Reply& reply) {
    if (!reply.error().empty()) {
      refused = absl::FailedPreconditionError(reply.error());
      return false;
    }
    // The collector does not look for leaks.
    if (reply.has_leaks() && reply.leaks().cycles_for_likely() == 0) {
      refused = absl::FailedPreconditionError(reply.leaks().text());
      return false;
    }
    if (reply.has_leaks()) print(text.OnAnswer(reply.leaks(), elapsed()));
    const bool over = options.duration_ns > 0 && elapsed() >= options.duration_ns;
    return !over && !(options.stopped && options.stopped());
  });
  print(text.AtEnd(elapsed()));
  if (!refused.ok()) return refused;
  // If the program ends, so does the watch.
  if (!status.ok() && !absl::IsUnavailable(status)) return status;
  return kDone;
}

absl::Status PrintFinalLeaks(const WatchOptions& options) {
  const auto recording = OpenRecording(options.recording, {.text = FormFor(options.json)});
  if (!recording.ok()) return recording.status();
  const answers::LeaksAnswer answer(**recording);
  if (options.json) {
    PrintWhole(Json::parse(answer.Json()).dump() + "\n");  // on one line, as every update
  } else {
    std::string text = answer.Text(options.terminal);
    if (!options.label.empty()) text.resize(text.find('\n') + 1);
    PrintWhole(WithLabel(options.label, text));
  }
  return absl::OkStatus();
}

}  // namespace gmt::cli
