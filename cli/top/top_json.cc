#include "cli/top/top_json.h"

#include <nlohmann/json.hpp>

namespace gmt::cli {
namespace {

using Json = nlohmann::ordered_json;

Json HeapJson(const control::HeapStatus& heap) {
  Json row = {{"device", nullptr},
              {"heap", heap.heap()},
              {"live_bytes", heap.live_bytes()},
              {"live_count", heap.live_count()},
              {"peak_live_bytes", heap.peak_bytes()},
              {"peak_live_t_ns", heap.peak_t_ns()},
              {"reserved_bytes", nullptr},
              {"allocations", heap.allocations()},
              {"frees", heap.frees()},
              {"growth_bytes_per_second", heap.growth_bytes_per_second()}};
  if (heap.has_device()) row["device"] = heap.device();
  if (heap.has_reserved_bytes()) row["reserved_bytes"] = heap.reserved_bytes();
  return row;
}

Json SiteJson(const control::Site& site) {
  Json row = {
      {"id", site.stack() == 0 ? Json(nullptr) : Json("stack/" + std::to_string(site.stack()))},
      {"device", nullptr},
      {"heap", site.heap()},
      {"bytes", site.live_bytes()},
      {"count", site.live_count()},
      {"allocations", site.allocations()},
      {"growth_bytes", site.growth_bytes()},
      {"growth_ns", site.growth_ns()},
      {"allocations_per_second", site.allocations_per_second()},
      {"other", site.other()}};
  if (site.has_device()) row["device"] = site.device();
  Json frames = Json::array();
  for (const control::Frame& frame : site.frames()) {
    frames.push_back({{"function", frame.function()},
                      {"file", frame.file()},
                      {"line", frame.line()},
                      {"language", frame.python() ? "python" : "c++"},
                      {"module", frame.module()}});
  }
  row["frames"] = std::move(frames);
  return row;
}

}  // namespace

Json TopJson(const TopModel& model) {
  Json processes = Json::array();
  for (const TopProcess& process : model.processes()) {
    Json heaps = Json::array(), stacks = Json::array();
    for (const control::HeapStatus& heap : process.last.status().heaps())
      heaps.push_back(HeapJson(heap));
    for (const control::Site& site : process.last.sites()) stacks.push_back(SiteJson(site));
    processes.push_back(
        {{"pid", process.pid},
         {"command", process.command},
         {"trouble", process.trouble.empty() ? Json(nullptr) : Json(process.trouble)},
         {"t_ns", process.last.status().t_ns()},
         {"recording", process.last.status().recording()},
         {"heaps", std::move(heaps)},
         {"stacks", std::move(stacks)}});
  }
  return processes;
}

}  // namespace gmt::cli
