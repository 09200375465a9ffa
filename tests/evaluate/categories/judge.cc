// judge_categories RECORDING TRUTH: compares the categories of a recording with what the program
// reported about itself (truth.py) at each of its moments. Prints a line of JSON for each moment:
//
//   {"name", "bytes": in blocks, "right", "claimed": bytes that the program reported,
//    "claimed_right", "wrong": [{"truth", "said", "bytes", "reason"}]}
//
// Memory that the program does not report must be temporaries, workspaces or communication. A
// category of the program's own tensors is wrong for it, unless the program reports that category
// later. Of the results that checkpointing recomputes, the program reports only the outputs of
// modules. An "output" that no backward pass needs may be dropped at once or kept, so both
// activation and temporary are right. Unknown is never right.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/replay.h"
#include "answers/recording.h"

namespace gmt::analysis {
namespace {

using Json = nlohmann::ordered_json;

struct Moment {
  std::string name;
  std::map<uint64_t, std::string> storages;  // address -> category
};

bool ReadTruth(const std::string& path, std::map<uint64_t, Moment>* moments) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    Moment& moment = (*moments)[json.at("index").get<uint64_t>()];
    moment.name = json.at("name").get<std::string>();
    for (const Json& storage : json.at("storages")) {
      moment.storages[storage.at(0).get<uint64_t>()] = storage.at(1).get<std::string>();
    }
  }
  return true;
}

bool MayBeUnreported(Category category, const Moment& moment) {
  if (category == Category::kRecomputed) return moment.name == "in_backward";
  return category == Category::kTemporaries || category == Category::kWorkspaces ||
         category == Category::kCommunication || category == Category::kGraphPools;
}

bool IsOfAPass(Category category) {
  return category == Category::kActivations || category == Category::kTemporaries;
}

// Returns the category that the program reported for a block, or "" if none.
std::string TruthOf(const Moment& moment, uint64_t address, uint64_t size) {
  const auto found = moment.storages.lower_bound(address);
  const bool inside = found != moment.storages.end() && found->first - address < size;
  return inside ? found->second : "";
}

// Without the cache of PyTorch's allocator, tensors are memory of the driver.
bool HasBlocks(const Trace& trace) { return trace.heaps.size() > 2; }

bool IsJudged(const Trace& trace, RowId row) {
  const uint32_t heap = trace.rows.heap[row];
  return heap != kHostHeap && (heap == kDriverHeap) != HasBlocks(trace) &&
         !trace.rows.IsRegion(row);
}

// The categories that the program reports for rows, possibly at a later moment: for example, for a
// gradient that is not yet assigned to its parameter.
using Becomes = std::map<RowId, std::string>;

void NoteWhatBecomes(const Trace& trace, const Moment& moment, Step step, Becomes& becomes) {
  for (const RowId row : HeldAfter(trace, step)) {
    if (!IsJudged(trace, row)) continue;
    const std::string truth = TruthOf(moment, trace.rows.address[row], trace.rows.size[row]);
    if (!truth.empty()) becomes[row] = truth;
  }
}

Json Judge(const Trace& trace, const Categories& categories, const Moment& moment, Step step,
           const Becomes& becomes) {
  uint64_t bytes = 0, right = 0, claimed = 0, claimed_right = 0;
  struct Error {
    uint64_t bytes = 0;
    std::string reason;  // one of them
  };
  std::map<std::pair<std::string, std::string>, Error> wrong;
  for (const RowId row : HeldAfter(trace, step)) {
    if (!IsJudged(trace, row)) continue;
    const uint64_t size = trace.rows.size[row];
    const Category answer = categories.Of(row).category;
    const std::string truth = TruthOf(moment, trace.rows.address[row], size);
    const auto later = becomes.find(row);
    const bool is_on_its_way = later != becomes.end() && later->second == NameOf(answer);
    const bool is_right = truth.empty()       ? MayBeUnreported(answer, moment) || is_on_its_way
                          : truth == "output" ? IsOfAPass(answer)
                                              : truth == NameOf(answer);
    bytes += size;
    if (is_right) right += size;
    if (!truth.empty()) claimed += size;
    if (!truth.empty() && is_right) claimed_right += size;
    if (is_right) continue;
    Error& error = wrong[{truth.empty() ? "unreported" : truth, std::string(NameOf(answer))}];
    error.bytes += size;
    error.reason = categories.Reason(row);
  }
  Json json = {{"name", moment.name},
               {"bytes", bytes},
               {"right", right},
               {"claimed", claimed},
               {"claimed_right", claimed_right},
               {"wrong", Json::array()}};
  for (const auto& [what, error] : wrong) {
    json["wrong"].push_back({{"truth", what.first},
                             {"said", what.second},
                             {"bytes", error.bytes},
                             {"reason", error.reason}});
  }
  return json;
}

int Main(const std::string& recording, const std::string& truth) {
  std::map<uint64_t, Moment> moments;
  if (!ReadTruth(truth, &moments)) {
    std::cerr << truth << ": cannot be read\n";
    return 1;
  }
  const auto loaded = answers::LoadRecording(recording, nullptr);
  if (!loaded.ok()) {
    std::cerr << loaded.status().message() << "\n";
    return 1;
  }
  const Trace& trace = (*loaded)->trace();
  const Categories& categories = (*loaded)->categories();
  std::vector<std::pair<const Moment*, Step>> marked;
  for (const Mark& mark : trace.marks) {
    if (mark.name != "truth" || !mark.index) continue;
    const auto moment = moments.find(*mark.index);
    if (moment != moments.end()) marked.emplace_back(&moment->second, mark.step);
  }
  Becomes becomes;
  for (const auto& [moment, step] : marked) NoteWhatBecomes(trace, *moment, step, becomes);
  for (const auto& [moment, step] : marked)
    std::cout << Judge(trace, categories, *moment, step, becomes).dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace gmt::analysis

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: judge_categories RECORDING TRUTH\n";
    return 2;
  }
  return gmt::analysis::Main(argv[1], argv[2]);
}
