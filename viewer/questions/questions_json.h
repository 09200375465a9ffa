// viewer/questions/questions_json.h
//
// Answers as sent to the page: JSON with the names of viewer/page/src/data/protocol.ts. A flame
// graph is sent as a slab: its arrays have the same names as in FlameTree.
//
// Texts of a recording need not be UTF-8; invalid bytes are replaced when they are written (Dump).
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_QUESTIONS_QUESTIONS_JSON_H_
#define GMT_VIEWER_QUESTIONS_QUESTIONS_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "viewer/questions/queries.h"

namespace gmt::viewer {

nlohmann::ordered_json ToJson(const StackInfo& stack);
nlohmann::ordered_json ToJson(const std::vector<StackInfo>& stacks);
nlohmann::ordered_json ToJson(const BlockDetails& block);
nlohmann::ordered_json ToJson(const SourceText& source);
nlohmann::ordered_json ToJson(const Table& table);
nlohmann::ordered_json ToJson(const RangeTable& table);
nlohmann::ordered_json ToJson(const Segments& segments);
nlohmann::ordered_json ToJson(const EventRow& row);
nlohmann::ordered_json ToJson(const EventPage& page);
nlohmann::ordered_json ToJson(const Found& found);

// `headline` and `diff`: the output of `gpumemtrace diff`.
nlohmann::ordered_json CompareJson(const Alignment& alignment, const std::string& headline,
                                   const nlohmann::ordered_json& diff);

// The parts of FileMeta that come from elsewhere.
struct FileNames {
  uint32_t file = 0;
  std::string path;
  std::vector<std::string> streams, threads, dtypes;  // by code, as in the index
  std::vector<std::string> lacks;                     // LoadedTrace::lacks
};
// `lanes`: an array of LaneMeta.
nlohmann::ordered_json FileMetaJson(const analysis::Examination& examination,
                                    const FileNames& names, const nlohmann::ordered_json& lanes);

std::string Dump(const nlohmann::ordered_json& json);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_QUESTIONS_JSON_H_
