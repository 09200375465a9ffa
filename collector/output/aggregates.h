// collector/output/aggregates.h
//
// A tally as the file has it (proto/gmt.proto, Aggregates).
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_AGGREGATES_H_
#define GMT_COLLECTOR_OUTPUT_AGGREGATES_H_

#include "collector/events/event_translator.h"
#include "collector/events/stack_translator.h"
#include "collector/events/tally.h"
#include "format/messages_fwd.h"

namespace gmt::collector {

// Without the number of events. Sites that hold nothing, neither now nor at their heap's peak, and
// made less than a ten-thousandth of their heap's allocations are summed up in one.
gmt::Aggregates MakeAggregates(const Tally& tally, const EventTranslator& translator,
                               StackTranslator* stacks);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_AGGREGATES_H_
