// collector/events/frame_namer.h
//
// FrameNamer: looks up the names of frames while the target runs, in its own thread at nice 10.
// Opening a large library takes tens of milliseconds, in which a busy ring would lap its reader. At
// the end of a run few lookups are left.
//
// A name is used only if its file exists and is still the recorded one (symbols/symbolizer.h).
// Names that another process of this machine has looked up come from the symbol cache
// (symbols/symbol_cache.h). The thread itself opens the cache, so that a slow disk delays no other
// work.
//
// Thread safety: call the public methods from one thread. Only the other thread uses the
// symbolizer.

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
  ~FrameNamer();  // pending lookups are dropped

  void Add(std::vector<symbols::FrameRequest> requests);

  // Returns the names found since the last call; `definitions` assigns ids to their texts. `count`
  // is 0 if there are none.
  gmt::Symbols TakeNames(format::DefinitionsBuilder* definitions);

  // Returns whether no frame is waiting, being looked up or ready to be taken.
  bool idle() const;
  // Waits until everything added has been looked up, or for `ns`.
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
