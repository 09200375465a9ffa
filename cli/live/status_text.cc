#include "cli/live/status_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/text.h"
#include "answers/json.h"
#include "proto/control.pb.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {
namespace {

using Json = nlohmann::ordered_json;

uint64_t Lost(const gmt::Losses& losses) {
  return losses.overrun() + losses.holes() + losses.abandoned();
}

std::string FirstLine(const control::Hello& hello, const control::Status& s) {
  uint64_t live = 0;  // of the driver heap, which contains the others
  for (const control::HeapStatus& heap : s.heaps()) {
    if (heap.heap() == "driver") live += heap.live_bytes();
  }
  const std::string lost =
      Lost(s.losses()) == 0
          ? "no events lost"
          : absl::StrCat(Plural(Lost(s.losses()), "event"), " lost",
                         s.inexact_because().empty() ? ", live memory is still exact" : "");
  return fmt::format("Process {} is being recorded: {} of device memory live; {}.", hello.pid(),
                     Bytes(live), lost);
}

std::string Place(const control::HeapStatus& heap) {
  return heap.has_device() ? absl::StrCat("device ", heap.device()) : "host";
}

std::string HeapTable(const control::Status& s) {
  if (s.heaps_size() == 0) return "  no allocations yet\n";
  std::string text =
      fmt::format("  {:<10} {:<8} {:>10} {:>10} {:>10} {:>12} {:>12} {:>12}\n", "", "heap", "live",
                  "peak", "reserved", "allocations", "frees", "growth");
  for (const control::HeapStatus& heap : s.heaps()) {
    const auto growth = static_cast<int64_t>(heap.growth_bytes_per_second());
    text += fmt::format("  {:<10} {:<8} {:>10} {:>10} {:>10} {:>12} {:>12} {:>12}\n", Place(heap),
                        heap.heap(), Bytes(heap.live_bytes()), Bytes(heap.peak_bytes()),
                        heap.has_reserved_bytes() ? Bytes(heap.reserved_bytes()) : "-",
                        Count(heap.allocations()), Count(heap.frees()),
                        growth == 0 ? "0 B/s" : absl::StrCat(SignedBytes(growth), "/s"));
  }
  return text;
}

std::string DeviceLines(const control::Status& s) {
  std::string text;
  for (const control::DeviceStatus& device : s.devices()) {
    if (!device.has_used_bytes()) continue;
    text +=
        fmt::format("  device {}   {} of {} used by all processes ({})\n", device.index(),
                    Bytes(device.used_bytes()),
                    device.has_total_bytes() ? Bytes(device.total_bytes()) : "?", device.source());
  }
  return text;
}

std::string LossLine(const gmt::Losses& losses) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, uint64_t count) {
    if (count != 0) parts.push_back(absl::StrCat(Count(count), " ", name));
  };
  add("overwritten before they were read", losses.overrun());
  add("never finished", losses.holes());
  add("abandoned by their writer", losses.abandoned());
  add("without a stack", losses.stacks_full());
  add("allocations that did not fit into the live table", losses.live_full());
  add("calls before recording was set up", losses.before_session());
  return parts.empty() ? "" : fmt::format("  lost       {}\n", absl::StrJoin(parts, ", "));
}

}  // namespace

std::string StatusText(const control::Hello& hello, const control::Status& s,
                       const Terminal& terminal) {
  std::string text = terminal.Bold(FirstLine(hello, s)) + "\n\n";
  text += HeapTable(s) + "\n" + DeviceLines(s);
  text += fmt::format("  recording  {}, {}, {} ({} so far)\n", hello.recording(),
                      Bytes(s.recording_bytes()), Plural(s.snapshots(), "snapshot"),
                      Duration(s.t_ns()));
  if (s.stalled())
    text += fmt::format("  problem    the recording cannot be written: {}\n", s.stall_reason());
  if (!s.inexact_because().empty())
    text += fmt::format("  problem    live memory is not exact: {}\n", s.inexact_because());
  text += fmt::format(
      "  events     {} read, {:.0f} per second; {} waiting in a ring of {}{}\n",
      Count(s.losses().delivered()), s.events_per_second(), Count(s.losses().backlog()),
      Count(s.ring_capacity()),
      s.lag_ns() == 0 ? ""
                      : absl::StrCat(", ", Duration(static_cast<int64_t>(s.lag_ns())), " behind"));
  text += LossLine(s.losses());
  text += fmt::format("  collector  process {}, {} of memory, {} of CPU time; {}\n",
                      hello.collector_pid(), Bytes(s.collector_rss_bytes()),
                      Duration(static_cast<int64_t>(s.collector_cpu_ns())),
                      Plural(s.clients(), "client"));
  if (!s.listening().empty()) text += fmt::format("  metrics    {}/metrics\n", s.listening());
  if (!s.listen_problem().empty())
    text += fmt::format("  metrics    none: {}\n", s.listen_problem());
  return text;
}

Json StatusJson(const control::Hello& hello, const control::Status& s) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Json out = answers::NewJson("status", hello.recording());
  out["pid"] = hello.pid();
  out["t_ns"] = s.t_ns();
  out["newest_t_ns"] = s.newest_t_ns();
  out["heaps"] = Json::array();
  for (const control::HeapStatus& heap : s.heaps()) {
    out["heaps"].push_back(
        {{"device", heap.has_device() ? Json(heap.device()) : Json(nullptr)},
         {"heap", heap.heap()},
         {"live_bytes", heap.live_bytes()},
         {"live_count", heap.live_count()},
         {"peak_live_bytes", heap.peak_bytes()},
         {"peak_live_t_ns", heap.peak_t_ns()},
         {"reserved_bytes",
          heap.has_reserved_bytes() ? Json(heap.reserved_bytes()) : Json(nullptr)},
         {"allocations", heap.allocations()},
         {"allocated_bytes", heap.allocated_bytes()},
         {"frees", heap.frees()},
         {"failures", heap.failures()},
         {"growth_bytes_per_second", heap.growth_bytes_per_second()}});
  }
  out["devices"] = Json::array();
  for (const control::DeviceStatus& device : s.devices()) {
    out["devices"].push_back(
        {{"index", device.index()},
         {"name", text_or_null(device.name())},
         {"uuid", text_or_null(device.uuid())},
         {"pci_bus_id", text_or_null(device.pci_bus_id())},
         {"total_bytes", device.has_total_bytes() ? Json(device.total_bytes()) : Json(nullptr)},
         {"used_bytes", device.has_used_bytes() ? Json(device.used_bytes()) : Json(nullptr)},
         {"source", text_or_null(device.source())}});
  }
  const gmt::Losses& losses = s.losses();
  out["losses"] = {{"written", losses.written()},     {"delivered", losses.delivered()},
                   {"overrun", losses.overrun()},     {"holes", losses.holes()},
                   {"abandoned", losses.abandoned()}, {"backlog", losses.backlog()}};
  out["exact"] = s.inexact_because().empty();
  out["inexact_because"] = text_or_null(s.inexact_because());
  out["stacks"] = s.sites();
  out["events_per_second"] = s.events_per_second();
  out["lag_ns"] = s.lag_ns();
  out["ring_capacity"] = s.ring_capacity();
  out["recording_bytes"] = s.recording_bytes();
  out["snapshots"] = s.snapshots();
  out["problem"] = s.stalled() ? Json(s.stall_reason()) : Json(nullptr);
  out["collector"] = {{"pid", hello.collector_pid()},   {"version", hello.release()},
                      {"cpu_ns", s.collector_cpu_ns()}, {"rss_bytes", s.collector_rss_bytes()},
                      {"clients", s.clients()},         {"copies", s.copies()},
                      {"copy_ns", s.copy_ns()}};
  out["metrics"] = text_or_null(s.listening());
  out["metrics_problem"] = text_or_null(s.listen_problem());
  out["session_bytes"] = s.session_bytes();
  return out;
}

}  // namespace gmt::cli
