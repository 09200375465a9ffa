#include "collector/output/snapshot.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "format/definitions_builder.h"
#include "format/event.h"
#include "format/live_columns.h"
#include "proto/gmt.pb.h"

namespace gmt::collector {

gmt::Live MakeLiveRows(const LiveModel& model, EventTranslator* translator) {
  std::vector<std::pair<Place, LiveModelEntry>> entries(model.entries().begin(),
                                                        model.entries().end());
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.ticket, a.first) < std::tie(b.second.ticket, b.first);
  });
  std::vector<format::Event> rows;
  rows.reserve(entries.size());
  for (const auto& [place, live] : entries) {
    rows.push_back(translator->Translate(MakeRecord(place, live)));
    rows.back().present &= ~uint64_t{format::kHasTotals};
    rows.back().roles = live.roles & session::kAllRoles;
  }
  return format::EncodeLive(rows);
}

void AddSegments(const Segments& segments, gmt::Checkpoint* checkpoint) {
  const auto rows = format::DecodeLive(checkpoint->held().live());
  if (!rows.ok()) return;  // there are too many for a checkpoint
  uint32_t last = 0;
  for (uint32_t row = 0; row < rows->size(); ++row) {
    const format::Event& event = (*rows)[row];
    if (event.kind != gmt::ALLOC || event.memory == gmt::BLOCK ||
        !segments.Contains(event.address)) {
      continue;
    }
    checkpoint->add_segments(row - std::exchange(last, row));
  }
}

void AddInFlight(const session::SessionMap& session, EventTranslator* translator,
                 StackTranslator* stacks, gmt::Snapshot* snapshot) {
  const auto* slots = session.section<const session::InFlightSlot>(session::kInFlight);
  for (uint64_t i = 0; i < session.count(session::kInFlight); ++i) {
    const uint32_t thread = slots[i].thread.load(std::memory_order_acquire);
    if (thread == 0) continue;
    gmt::InFlight* call = snapshot->add_in_flight();
    call->set_thread(thread);
    call->set_api(
        translator->ApiName(static_cast<uint16_t>(slots[i].api.load(std::memory_order_relaxed))));
    call->set_size(slots[i].size.load(std::memory_order_relaxed));
    call->set_stack(
        stacks->Translate(static_cast<uint32_t>(slots[i].stack.load(std::memory_order_relaxed))));
    call->set_since_t_ns(translator->Time(slots[i].since_ns.load(std::memory_order_relaxed)));
  }
}

}  // namespace gmt::collector
