// cli/top/top_model.h
//
// TopModel: what `gpumemtrace top` knows of the recorded processes: the last answer of each
// collector, and how much was live in the last minute.
//
//   collector --socket--> Top --Take()--> TopModel --DrawTop()--> lines (cli/top/top_screen.h)
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_TOP_TOP_MODEL_H_
#define GMT_CLI_TOP_TOP_MODEL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/control.pb.h"

namespace gmt::cli {

// Identifies a heap. Host memory has device number -1.
struct TopHeapKey {
  int32_t device = 0;
  std::string heap;

  bool operator<(const TopHeapKey& other) const {
    return std::tie(device, heap) < std::tie(other.device, other.heap);
  }
};
TopHeapKey KeyOf(const control::HeapStatus& heap);

struct TopProcess {
  uint64_t pid = 0;
  std::string command;  // its command line
  std::string trouble;  // why there are no newer answers; empty while it is recorded
  control::Top last;    // empty before the first answer
  std::map<TopHeapKey, std::deque<uint64_t>> live;  // bytes, one sample per interval, oldest first
};

class TopModel {
 public:
  static constexpr size_t kSamples = 60;

  // Adds the process if it is not known. The reference is valid until the next Add().
  TopProcess& Add(uint64_t pid, const std::string& command);
  void Take(uint64_t pid, const control::Top& top);
  void Lose(uint64_t pid, const std::string& why);

  const std::vector<TopProcess>& processes() const { return processes_; }
  // Returns null if the process is not known.
  const TopProcess* Find(uint64_t pid) const;
  // Returns the process, the first one if it is not known, or null if there is none.
  const TopProcess* FindOrFirst(uint64_t pid) const;

 private:
  TopProcess* Find(uint64_t pid) { return const_cast<TopProcess*>(std::as_const(*this).Find(pid)); }

  std::vector<TopProcess> processes_;  // by pid
};

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_MODEL_H_
