// collector/output/aggregates.h
//
// Converts a Tally into the Aggregates message of a recording (proto/gmt.proto).
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_OUTPUT_AGGREGATES_H_
#define GMT_COLLECTOR_OUTPUT_AGGREGATES_H_

#include "collector/events/event_translator.h"
#include "collector/events/stack_translator.h"
#include "collector/events/tally.h"
#include "format/messages_fwd.h"

namespace gmt::collector {

// Returns all fields but the number of events. Sites that hold nothing, neither now nor at their
// heap's peak, and that made less than a ten-thousandth of their heap's allocations are merged into
// one site per heap.
gmt::Aggregates MakeAggregates(const Tally& tally, const EventTranslator& translator,
                               StackTranslator* stacks);

// The same without sites.
gmt::Aggregates MakeHeapSums(const Tally& tally, const EventTranslator& translator);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_OUTPUT_AGGREGATES_H_
