// answers/report/allocator.h
//
// What a report says of a framework's allocator (analysis/report/allocator_report.h), for people and for
// programs.
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

// A row for each allocator of a device that has several; "" if it has one.
std::string AllocatorsText(const std::vector<analysis::AllocatorUse>& allocators, int32_t device);
nlohmann::ordered_json AllocatorsJson(const std::vector<analysis::AllocatorUse>& allocators,
                                      int32_t device);
// How much is free, and how large a request would succeed; "" if nothing is known of it.
std::string RoomText(const std::vector<analysis::Room>& rooms, int32_t device);
nlohmann::ordered_json RoomJson(const std::vector<analysis::Room>& rooms, int32_t device);

// Lines of one device: its pools, what the allocator did, the typical step. Empty where nothing is
// known.
std::string AllocatorText(const analysis::AllocatorReport& report, int32_t device);

// Where our sums are not the allocator's, as sentences.
std::vector<std::string> Mismatches(const std::vector<analysis::Reconciliation>& reconciliations);

// Adds the keys "pools" and "steps" to a device of the report.
void AddAllocatorKeys(const analysis::AllocatorReport& report, int32_t device,
                      nlohmann::ordered_json& json);
nlohmann::ordered_json ActionsJson(const analysis::AllocatorReport& report);
nlohmann::ordered_json ReconciliationJson(const analysis::AllocatorReport& report);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_ALLOCATOR_H_
