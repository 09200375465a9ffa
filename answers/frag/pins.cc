#include "answers/frag/pins.h"

#include <nlohmann/json.hpp>
#include <string>

#include "answers/json.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

MainPins MainPinsOf(const analysis::Trace& trace, const std::vector<analysis::Pin>& pins) {
  uint64_t all = 0;
  for (const analysis::Pin& pin : pins) all += pin.pinned_bytes;
  MainPins main;
  for (const analysis::Pin& pin : pins) {
    if (main.pinned_bytes >= all - all / 10) break;
    ++main.blocks;
    main.block_bytes += trace.rows.size[pin.row];
    main.pinned_bytes += pin.pinned_bytes;
  }
  return main;
}

Json PinsJson(const std::vector<analysis::PinGroup>& groups,
              const analysis::Examination& examination, analysis::SourceLines& sources,
              size_t top) {
  Json pins = Json::array();
  for (const analysis::PinGroup& group : groups) {
    if (pins.size() == top) break;
    Json& row = pins.emplace_back(Json{
        {"id", OrNull(StackId(group.stack, group.forward_stack))},
        {"blocks", group.blocks},
        {"block_bytes", group.block_bytes},
        {"pinned_bytes", group.pinned_bytes},
        {"oldest_t_ns", examination.trace().TimeOf(group.first_birth)},
        {"source", OrNull(SourceText(examination, group.stack, group.forward_stack, sources))}});
    AddStack(examination, group.stack, group.forward_stack, row);
  }
  return pins;
}

}  // namespace gmt::answers
