// collector/frame_namer.h
//
// FrameNamer: looks names of frames up while the target runs, in a thread of its own at nice 10:
// opening a large library takes tens of milliseconds, in which a busy ring would lap its reader. At
// the end of a run little is left to do.
//
// Only names of files that exist and still are the ones recorded are taken (symbols/symbolizer.h).
//
// Thread safety: the public methods from one thread. The symbolizer lives in the other thread only.

#ifndef GMT_COLLECTOR_FRAME_NAMER_H_
#define GMT_COLLECTOR_FRAME_NAMER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "format/definitions.h"
#include "proto/gmt.pb.h"
#include "symbols/symbolize_recording.h"

namespace gmt::collector {

class FrameNamer {
 public:
  // `root`: where paths of modules begin ("/proc/PID/root" for a target with another root); may be
  // empty.
  explicit FrameNamer(const std::string& root);
  ~FrameNamer();  // what was not looked up yet never will be

  void Add(std::vector<symbols::FrameRequest> requests);

  // The names found since the last call; their texts get ids from `definitions`. `count` is 0 where
  // there are none.
  gmt::Symbols TakeNames(format::DefinitionsBuilder* definitions);

  // Nothing is waiting, looked up or to be taken.
  bool idle() const;
  // Returns when everything added has been looked up, or after `ns`.
  void WaitUntilDone(uint64_t ns);

 private:
  struct Named {
    uint32_t frame;
    std::vector<symbols::ResolvedSymbol> symbols;
  };

  void Work(const std::string& root);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<symbols::FrameRequest> waiting_;
  std::vector<Named> named_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_FRAME_NAMER_H_
