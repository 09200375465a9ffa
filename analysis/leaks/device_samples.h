// analysis/leaks/device_samples.h
//
// DeviceSamples: what devices say is used, beside what is recorded, cycle by cycle: growth that no event
// explains (analysis/leaks/untracked.h), and the room that is left.
//
// Memory: a number for each chunk of cycles and source. Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_LEAKS_DEVICE_SAMPLES_H_
#define GMT_ANALYSIS_LEAKS_DEVICE_SAMPLES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/leaks/site_history.h"
#include "analysis/leaks/untracked.h"
#include "format/messages_fwd.h"

namespace gmt::analysis {

class DeviceSamples {
 public:
  // `bytes`: of the process where that is told, else of all; `used`: of all.
  struct Used {
    uint64_t bytes = 0, used = 0;
  };
  // What a device has, as its last sample says, of the source that is believed where there are several.
  struct Room {
    uint64_t total = 0;
    uint64_t outside = 0;  // bytes in use that are not recorded
  };

  // `pid`: whose use is looked for in samples.
  explicit DeviceSamples(uint64_t pid) : pid_(pid) {}

  // Number of the sample's source.
  uint32_t Read(const gmt::Sample& sample, int32_t device, Used* used);
  // `recorded`: bytes of the driver's memory at that moment.
  void Count(uint32_t source, Used used, uint64_t recorded, const ChunkGrid& grid);
  // Forgets cycles, and keeps sources.
  void BeginAnew();

  // By device and source.
  std::vector<UntrackedGrowth> Grown(const ChunkGrid& grid) const;
  std::map<int32_t, Room> Rooms() const;

 private:
  struct Source {
    int32_t device = 0;
    std::string name;
    bool of_process = false;
    Room room;
    UntrackedChunks least;
    uint32_t level = 0;  // of the grid that `least` is on

    void MergeTo(uint32_t grid_level);
  };

  const uint64_t pid_;
  std::vector<Source> sources_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_DEVICE_SAMPLES_H_
