// gpumemtrace info: summarizes a recording: program, duration, number of events, and what it lacks.

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "analysis/text.h"
#include "answers/json.h"
#include "answers/report/streams.h"
#include "cli/command.h"
#include "cli/info_summary.h"
#include "cli/open_recording.h"
#include "cli/verbs.h"
#include "format/printable.h"
#include "interop/open_input.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoArguments {
  std::string input;
  bool json = false;
};

constexpr const char* kLibraries[] = {"cuda_driver", "cuda_runtime", "torch", "python"};
constexpr const char* kSources[] = {"cupti", "pytorch", "python", "nvtx", "nvml"};

using Settings = google::protobuf::RepeatedPtrField<Setting>;

// A recording without an exit is of a process that is still running, or whose end was not observed.
const char* ExitName(const InfoSummary& summary, bool complete) {
  switch (summary.facts.exit().kind()) {
    case Exit::EXITED:
      return "exited";
    case Exit::SIGNALLED:
      return "signalled";
    case Exit::RUNNING:
      return "running";
    case Exit::LOST:
      return "lost";
    default:
      return complete ? "lost" : "running";
  }
}

// ---- JSON ---------------------------------------------------------------------------------------

Json TargetJson(const InfoSummary& summary, bool complete) {
  const Exit& exit = summary.facts.exit();
  Json target;
  target["pid"] = summary.pid() != 0 ? Json(summary.pid()) : Json();
  target["argv"] = Json::array();
  for (const std::string& word : summary.facts.argv()) target["argv"].push_back(word);
  target["exit"] = {{"kind", ExitName(summary, complete)},
                    {"code", exit.has_code() ? Json(exit.code()) : Json()},
                    {"known_by", exit.known_by().empty() ? Json() : Json(exit.known_by())}};
  const Facts& facts = summary.facts;
  target["rank"] = facts.has_rank() ? Json(facts.rank()) : Json();
  target["local_rank"] = facts.has_local_rank() ? Json(facts.local_rank()) : Json();
  target["world_size"] = facts.has_world_size() ? Json(facts.world_size()) : Json();
  target["node_rank"] = facts.has_node_rank() ? Json(facts.node_rank()) : Json();
  target["restart_count"] = facts.has_restart_count() ? Json(facts.restart_count()) : Json();
  target["job"] = facts.job().empty() ? Json() : Json(facts.job());
  return target;
}

Json LossesJson(const InfoSummary& summary) {
  const Losses& losses = summary.losses;
  return {
      {"written", losses.written()},           {"delivered", losses.delivered()},
      {"overrun", losses.overrun()},           {"holes", losses.holes()},
      {"abandoned", losses.abandoned()},       {"backlog", losses.backlog()},
      {"adds_up", summary.losses_add_up()},    {"stacks_full", losses.stacks_full()},
      {"codes_full", losses.codes_full()},     {"activities_dropped", losses.activities_dropped()},
      {"live_full", losses.live_full()},       {"contexts_full", losses.contexts_full()},
      {"modules_full", losses.modules_full()}, {"texts_full", losses.texts_full()}};
}

// Returns "GPU 0 (A100, 80 GiB)", as far as it is known.
std::string DeviceText(const Device& device) {
  std::vector<std::string> known;
  if (device.has_name()) known.push_back(device.name());
  if (device.has_total_bytes()) known.push_back(Bytes(device.total_bytes()));
  const std::string gpu = fmt::format("GPU {}", device.index());
  return known.empty() ? gpu : fmt::format("{} ({})", gpu, fmt::join(known, ", "));
}

Json DevicesJson(const Facts& facts) {
  Json devices = Json::array();
  for (const Device& device : facts.devices()) {
    const auto text = [](bool has, const std::string& value) { return has ? Json(value) : Json(); };
    devices.push_back(
        {{"index", device.index()},
         {"name", text(device.has_name(), device.name())},
         {"uuid", text(device.has_uuid(), device.uuid())},
         {"pci_bus_id", text(device.has_pci_bus_id(), device.pci_bus_id())},
         {"total_bytes", device.has_total_bytes() ? Json(device.total_bytes()) : Json()},
         {"physical_index", device.has_physical_index() ? Json(device.physical_index()) : Json()},
         {"compute_capability",
          text(device.has_compute_capability(), device.compute_capability())}});
  }
  return devices;
}

Json HeapsJson(const InfoSummary& summary) {
  Json heaps = Json::array();
  for (const auto& [heap, counts] : summary.heaps) {
    heaps.push_back({{"heap", heap}, {"allocations", counts.allocations}, {"frees", counts.frees}});
  }
  return heaps;
}

Json HistoryJson(const InfoSummary& summary) {
  const bool dropped = summary.before.has_value();
  return {{"files", summary.parts},
          {"details_from_t_ns", dropped ? Json(summary.before->t_ns()) : Json()},
          {"events_before", dropped ? Json(summary.before->events()) : Json(0)},
          {"ended_by", summary.facts.ended_by().empty() ? Json() : Json(summary.facts.ended_by())}};
}

Json SnapshotsJson(const InfoSummary& summary) {
  Json snapshots = Json::array();
  for (const InfoSummary::SnapshotInfo& snapshot : summary.snapshots) {
    snapshots.push_back({{"id", "snapshot/" + snapshot.name},
                         {"name", snapshot.name},
                         {"reason", snapshot.reason},
                         {"t_ns", snapshot.t_ns},
                         {"exact", snapshot.exact},
                         {"allocations", snapshot.live}});
  }
  return snapshots;
}

// The given names are always present because callers rely on them. Others appear if they are known.
template <size_t N>
Json SettingsJson(const Settings& settings, const char* const (&names)[N]) {
  Json values = Json::object();
  for (const char* name : names) values[name] = nullptr;
  for (const Setting& setting : settings) values[setting.name()] = setting.value();
  return values;
}

void PrintInfoJson(const std::string& path, InfoSummary& summary, const interop::Input& input) {
  Json info = answers::NewJson("info", path);
  info["complete"] = input.complete();
  info["recorded_by"] = summary.header.tool_version();
  info["imported_from"] =
      summary.header.imported_from().empty() ? Json() : Json(summary.header.imported_from());
  info["target"] = TargetJson(summary, input.complete());
  info["duration_ns"] = summary.duration_ns();
  info["events"] = {{"alloc", summary.alloc},
                    {"free", summary.free},
                    {"free_failed", summary.free_failed},
                    {"alloc_failed", summary.alloc_failed},
                    {"role", summary.role},
                    {"other", summary.other}};
  info["losses"] = LossesJson(summary);
  info["devices"] = DevicesJson(summary.facts);
  info["heaps"] = HeapsJson(summary);
  info["history"] = HistoryJson(summary);
  info["snapshots"] = SnapshotsJson(summary);
  info["libraries"] = SettingsJson(summary.facts.libraries(), kLibraries);
  info["sources"] = SettingsJson(summary.facts.sources(), kSources);
  info["cross_check"] = answers::CrossCheckJson(summary.TakeCrossCheck());
  info["notes"] = input.notes();
  PrintJson(info);
}

// ---- Text ---------------------------------------------------------------------------------------

void Row(const Terminal& terminal, const char* name, const std::string& value) {
  if (!value.empty()) fmt::print("{} {}\n", terminal.Dim(fmt::format("{:<10}", name)), value);
}

std::string TargetText(const InfoSummary& summary, bool complete) {
  const Facts& facts = summary.facts;
  std::string text = summary.pid() != 0 ? fmt::format("pid {}", summary.pid()) : "";
  for (const std::string& word : facts.argv()) text += (text.empty() ? "" : " ") + word;
  if (text.empty()) return text;
  const char* name = ExitName(summary, complete);
  text += facts.exit().has_code() ? fmt::format("   {} with {}", name, facts.exit().code())
                                  : fmt::format("   {}", name);
  return text;
}

// Returns "rank 3 of 16, local rank 1, on node 0, restart 2, job 4711", as far as it is known.
std::string RankText(const Facts& facts) {
  std::vector<std::string> known;
  if (facts.has_rank()) {
    known.push_back(facts.has_world_size()
                        ? fmt::format("rank {} of {}", facts.rank(), facts.world_size())
                        : fmt::format("rank {}", facts.rank()));
  } else if (facts.has_world_size()) {
    known.push_back(fmt::format("one of {}", facts.world_size()));
  }
  if (facts.has_local_rank()) known.push_back(fmt::format("local rank {}", facts.local_rank()));
  if (facts.has_node_rank()) known.push_back(fmt::format("on node {}", facts.node_rank()));
  if (facts.restart_count() > 0) known.push_back(fmt::format("restart {}", facts.restart_count()));
  if (!facts.job().empty()) known.push_back("job " + facts.job());
  return fmt::format("{}", fmt::join(known, ", "));
}

std::string EventsText(const InfoSummary& summary) {
  return fmt::format(
      "{} alloc, {} free, {} free failed, {} alloc failed, {}{} other", Count(summary.alloc),
      Count(summary.free), Count(summary.free_failed), Count(summary.alloc_failed),
      summary.role > 0 ? fmt::format("{} role, ", Count(summary.role)) : "", Count(summary.other));
}

// Returns "" if the whole history is there, in one file.
std::string HistoryText(const InfoSummary& summary) {
  std::string text;
  if (summary.parts > 1) text = fmt::format("in {} files", summary.parts);
  if (!summary.before.has_value()) return text;
  return fmt::format("{}{}events from {} on; only sums of {} before that", text,
                     text.empty() ? "" : "; ", Duration(summary.before->t_ns()),
                     Plural(summary.before->events(), "event"));
}

std::string LossesText(const InfoSummary& summary) {
  const Losses& losses = summary.losses;
  if (!summary.losses_add_up()) {
    return fmt::format(
        "the counters contradict each other: {} written, but {} delivered + {} overrun + {} holes "
        "+ {} "
        "abandoned + {} backlog",
        Count(losses.written()), Count(losses.delivered()), Count(losses.overrun()),
        Count(losses.holes()), Count(losses.abandoned()), Count(losses.backlog()));
  }
  if (losses.written() == 0) return "";
  if (summary.lost() == 0 && losses.backlog() == 0)
    return fmt::format("none of {} events", Count(losses.written()));
  return fmt::format(
      "{} written = {} delivered + {} overrun + {} holes + {} abandoned + {} backlog",
      Count(losses.written()), Count(losses.delivered()), Count(losses.overrun()),
      Count(losses.holes()), Count(losses.abandoned()), Count(losses.backlog()));
}

template <typename List, typename Describe>
std::string Join(const List& list, Describe describe) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + describe(item);
  return text;
}

std::string SettingText(const Setting& setting) {
  return fmt::format("{} {}", setting.name(), setting.value());
}

// Returns "1,200 allocations, 1,100 frees also seen by CUPTI; 2 only by CUPTI", or "" without CUPTI
// records.
std::string CrossCheckText(const analysis::CrossCheckResult& check) {
  if (!check.was_made) return "";
  std::string text =
      fmt::format("{}, {} also seen by CUPTI", Plural(check.allocations, "allocation"),
                  Plural(check.frees, "free"));
  if (check.only_cupti > 0) text += fmt::format("; {} only by CUPTI", Count(check.only_cupti));
  if (check.only_ours > 0) text += fmt::format("; {} not by CUPTI", Count(check.only_ours));
  return text;
}

// Returns how much of what an imported file shows was held before its history, or "". A file
// without a history shows only what was held.
std::string HeldBeforeText(const InfoSummary& summary) {
  if (summary.header.imported_from().empty() || summary.snapshots.empty()) return "";
  const InfoSummary::SnapshotInfo& first = summary.snapshots.front();
  if (first.live == 0 || (first.name != "begin" && summary.alloc > 0)) return "";
  return fmt::format("; {} from before its history", Plural(first.live, "allocation"));
}

void PrintInfoText(const std::string& path, InfoSummary& summary, const interop::Input& input,
                   const Terminal& terminal) {
  fmt::print("{}   {}{}\n", terminal.Bold(path),
             input.complete() ? "complete" : terminal.Yellow("not complete"),
             HeldBeforeText(summary));
  const Header& header = summary.header;
  Row(terminal, "recorded",
      header.imported_from().empty() ? "by gpumemtrace " + header.tool_version()
                                     : "imported from: " + header.imported_from());
  Row(terminal, "target", TargetText(summary, input.complete()));
  Row(terminal, "job", RankText(summary.facts));
  Row(terminal, "duration", Duration(summary.duration_ns()));
  Row(terminal, "events", EventsText(summary));
  Row(terminal, "history", HistoryText(summary));
  Row(terminal, "losses", LossesText(summary));
  Row(terminal, "devices", Join(summary.facts.devices(), DeviceText));
  Row(terminal, "heaps", Join(summary.heaps, [](const auto& heap) {
        return fmt::format("{} ({}, {})", heap.first.empty() ? "unnamed" : heap.first,
                           Plural(heap.second.allocations, "allocation"),
                           Plural(heap.second.frees, "free"));
      }));
  Row(terminal, "snapshots", Join(summary.snapshots, [](const InfoSummary::SnapshotInfo& snapshot) {
        return fmt::format("{} ({}{})", snapshot.name, Plural(snapshot.live, "live allocation"),
                           snapshot.exact ? "" : ", not exact");
      }));
  Row(terminal, "libraries", Join(summary.facts.libraries(), SettingText));
  Row(terminal, "sources", Join(summary.facts.sources(), SettingText));
  Row(terminal, "checked", CrossCheckText(summary.TakeCrossCheck()));
}

absl::StatusOr<int> Info(const InfoArguments& options, const Terminal& terminal) {
  const auto read = Summarize(options.input, FormFor(options.json));
  if (!read.ok()) return read.status();
  if (options.json) {
    PrintInfoJson(options.input, *read->summary, *read->input);
  } else {
    PrintInfoText(format::Printable(options.input), *read->summary, *read->input, terminal);
  }
  for (const std::string& note : read->input->notes()) PrintNote(note);
  return kDone;
}

}  // namespace

void AddInfo(Program& program) {
  auto options = std::make_shared<InfoArguments>();
  Command command =
      program.AddVerb("info", "Summarize a recording and what it lacks",
                      [options](const Terminal& terminal) { return Info(*options, terminal); });
  command.Argument("FILE", &options->input, "a recording or an event log");
  command.Flag("--json", &options->json, "print JSON");
}

}  // namespace gmt::cli
