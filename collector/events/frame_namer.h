// collector/events/frame_namer.h
//
// FrameNamer: looks names of frames up while the target runs, in a thread of its own at nice 10:
// opening a large library takes tens of milliseconds, in which a busy ring would lap its reader. At
// the end of a run little is left to do.
//
// Only names of files that exist and still are the ones recorded are taken (symbols/symbolizer.h).
// What another process of this machine has looked up is taken from the cache of names
// (symbols/symbol_cache.h), which the thread opens itself: a slow disk holds nobody up.
//
// Thread safety: the public methods from one thread. The symbolizer lives in the other thread only.

#ifndef GMT_COLLECTOR_EVENTS_FRAME_NAMER_H_
#define GMT_COLLECTOR_EVENTS_FRAME_NAMER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "format/definitions.h"
#include "format/definitions_builder.h"
#include "format/messages_fwd.h"
#include "symbols/symbol_cache.h"
#include "symbols/symbolize_recording.h"

namespace gmt::collector {

class FrameNamer {
 public:
  // `options`: where the target's files are. `cache_directory`: empty for no cache.
  FrameNamer(symbols::SymbolizerOptions options, std::string cache_directory);
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

  void Work(symbols::SymbolizerOptions options, const std::string& cache_directory);
  void NameFrames(symbols::Symbolizer& symbolizer, symbols::SymbolCache* cache);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<symbols::FrameRequest> waiting_;
  std::vector<Named> named_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_FRAME_NAMER_H_
