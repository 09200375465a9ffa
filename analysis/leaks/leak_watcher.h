// analysis/leaks/leak_watcher.h
//
// LeakWatcher: the leak search beside a running program. It receives the events of a recording and
// can produce at any time the evidence that CollectEvidence() would find in a recording of them,
// without storing events.
//
//   LeakWatcher watcher(definitions, pid);
//   watcher.OnEvent(event);
//   const LeakReport report = ConcludeLeaks(watcher.Evidence(), texts);
//
// Cycles
//   The source of cycles becomes more reliable the longer the program runs. Memory operations are
//   kept in a journal (40 bytes per event) for the first kJournal events. Whenever a better source
//   is found, the whole journal is counted again by it. Later there is no journal: a better source
//   then begins with what is held at that time, as its first cycle. Without marks, the journal is
//   searched for them as a recording is: each time it has doubled, and for Evidence() if it has
//   grown. A source that stays silent for long is given up, and a new journal is started.
//
// Failures
//   A program that runs out of memory frees what it had kept while it unwinds. Therefore the
//   evidence remains that of the failure until a whole cycle after the failing one has ended.
//
// Memory: what is held (HeldPieces), a journal of 10 MiB, kMostSites sites.
// Thread safety: one thread at a time.
// Cost: constant per event, except for evaluations of the journal, whose cost is amortised, and for
// one evaluation of the sites in a cycle in which an allocation failed.

#ifndef GMT_ANALYSIS_LEAKS_LEAK_WATCHER_H_
#define GMT_ANALYSIS_LEAKS_LEAK_WATCHER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/leaks/device_samples.h"
#include "analysis/leaks/held_pieces.h"
#include "analysis/leaks/leak_detector.h"
#include "analysis/leaks/leak_evidence.h"
#include "analysis/leaks/leak_journal.h"
#include "analysis/leaks/marked_cycles.h"

namespace gmt::analysis {

class LeakWatcher : private HeldPieces::Listener {
 public:
  static constexpr size_t kMostSites = 1 << 14, kJournal = 1 << 18;

  // REQUIRES: `definitions` outlives this object and contains what each event refers to. `pid`: of
  // the program, in samples. `attached`: the program held memory before the recording.
  LeakWatcher(const format::Definitions& definitions, uint64_t pid, bool attached = false);

  void OnEvent(const format::Event& event);
  void OnSample(const format::Event& event, const gmt::Sample& sample);

  // Evidence from all events so far, or until a failure. Cost: linear in sites.
  LeakEvidence Evidence();
  // Cycles so far, by the current source.
  uint64_t cycles() const { return cycles_.count; }
  int64_t first_t_ns() const { return first_t_ns_; }

 private:
  struct OfDevice {
    uint64_t held = 0, peak = 0;  // bytes: now, and the maximum of the current cycle
    std::deque<uint64_t> peaks;   // of the last cycles
    uint64_t recorded = 0;        // driver memory
  };
  void OnBorn(PieceId id, const HeldPiece& piece) override;
  void OnFreed(PieceId id, const HeldPiece& piece) override;
  void OnSegment(PieceId id, const HeldPiece& piece) override;
  void OnAwaits(PieceId id, const HeldPiece& piece) override;
  void OnFreeOfUnknown(int32_t device, uint32_t heap, uint64_t size) override;

  JournalEntry EntryOf(Happened what, PieceId id, const HeldPiece& piece) const;
  void Happen(const JournalEntry& entry);
  void OnFired(uint32_t marker);  // of marked_cycles_
  void Count(const JournalEntry& entry);
  void CountMemory(const JournalEntry& entry);
  void Note(OfDevice& device, uint64_t bytes, bool is_death);
  void EndCycle(int64_t t_ns);

  bool IsMarked() const { return rule_.marker != MarkedCycles::kNoMarker; }
  bool EndsAtAnchor(const JournalEntry& entry);
  void EndWhereLittleIsHeld();
  void ChooseMarker();
  void LookForCycles();
  void Adopt(CycleRule rule);
  void BeginAnew();
  void CountHeld();
  void WatchForSilence();

  std::vector<HeldBefore> Before() const;
  HeldBefore& BeforeOf(int32_t device, uint32_t heap);

  const format::Definitions& definitions_;
  HeldPieces memory_;
  MarkedCycles marked_cycles_;
  LeakDetector detector_;

  std::vector<JournalEntry> journal_;
  bool journaling_ = true, from_beginning_ = true;
  size_t look_at_ = 512, looked_at_ = 0;      // in entries: at the next search, at the last one
  std::vector<DeviceSamples::Used> sampled_;  // of the journal; without a journal, only the last

  CycleRule rule_;
  WatchedCycles cycles_;
  int64_t now_ns_ = 0, first_t_ns_ = 0;
  int64_t cycle_begin_ns_ = 0, begin_ns_ = 0, end_ns_ = 0;
  bool any_event_ = false, begun_ = false;
  uint64_t step_ = 0, last_firing_ = 0;  // births and deaths, as counted by cycles
  size_t next_end_ = 0;
  uint64_t last_end_ = 0;  // step
  // State of the low-water rule after the journal was dropped.
  struct Level {
    uint64_t least = UINT64_MAX, most = 0, steps = 0;  // of the current stretch
    double low = 0, high = 0;                          // from the previous stretch
    bool was_high = false;
  } level_;
  std::vector<int64_t> periods_;
  uint64_t period_stride_ = 1;

  std::vector<LeakDetector::Site> sites_;  // by piece
  std::vector<uint32_t> births_;           // cycle, by piece
  std::map<int32_t, OfDevice> devices_;
  std::map<int32_t, SiteHistory> segments_;
  DeviceSamples samples_;
  const bool attached_;
  std::map<std::pair<int32_t, uint32_t>, HeldBefore> before_;
  std::map<int32_t, uint64_t> reported_bytes_;  // driver memory reported from before, by device
  std::map<int32_t, uint64_t> other_;           // a device's first sample minus what was recorded
  std::optional<LeakEvidence> at_failure_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_LEAK_WATCHER_H_
