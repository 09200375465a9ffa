// answers/report/allocator.h
//
// The part of a report about a framework's allocator (analysis/report/allocator_report.h), as text
// and as JSON.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_ALLOCATOR_H_
#define GMT_ANSWERS_REPORT_ALLOCATOR_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/report/allocator_report.h"
#include "analysis/report/allocators.h"

namespace gmt::answers {

// Returns a row for each allocator of a device with several, or "" if it has one.
std::string AllocatorsText(const std::vector<analysis::AllocatorUse>& allocators, int32_t device);
nlohmann::ordered_json AllocatorsJson(const std::vector<analysis::AllocatorUse>& allocators,
                                      int32_t device);
// Returns how much is free and how large a request would succeed, or "" if that is unknown.
std::string RoomText(const std::vector<analysis::Room>& rooms, int32_t device);
nlohmann::ordered_json RoomJson(const std::vector<analysis::Room>& rooms, int32_t device);

// Returns the lines of one device: its pools, what the allocator did, and the typical step. "" if
// nothing is known.
std::string AllocatorText(const analysis::AllocatorReport& report, int32_t device);

// Returns the differences between our sums and the allocator's, as sentences.
std::vector<std::string> Mismatches(const std::vector<analysis::Reconciliation>& reconciliations);

// Adds the keys "pools", "steps" and "driver_calls" to a device of the report.
void AddAllocatorKeys(const analysis::AllocatorReport& report, int32_t device,
                      nlohmann::ordered_json& json);
nlohmann::ordered_json ActionsJson(const analysis::AllocatorReport& report);
nlohmann::ordered_json ReconciliationJson(const analysis::AllocatorReport& report);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_ALLOCATOR_H_
