// analysis/leaks/device_samples.h
//
// DeviceSamples: device usage as sampled, compared with what is recorded, per cycle: growth that no
// event explains (analysis/leaks/untracked.h), and the memory left.
//
// Memory: a number per chunk of cycles and source. Thread safety: one thread at a time.

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
  // `used`: what all processes use on the device. `bytes`: what this process uses, or the same as
  // `used` if that is unknown.
  struct Used {
    uint64_t bytes = 0, used = 0;
  };
  // A device's last sample, of the most trusted source.
  struct Room {
    uint64_t total = 0;
    uint64_t outside = 0;  // bytes in use that are not recorded
  };

  // `pid`: the process whose usage is looked up in samples.
  explicit DeviceSamples(uint64_t pid) : pid_(pid) {}

  // Returns the number of the sample's source.
  uint32_t Read(const gmt::Sample& sample, int32_t device, Used* used);
  // `recorded`: bytes of driver memory recorded at that moment.
  void Count(uint32_t source, Used used, uint64_t recorded, const ChunkGrid& grid);
  // Forgets the cycles but keeps the sources.
  void BeginAnew();

  // Ordered by device and source.
  std::vector<UntrackedGrowth> Grown(const ChunkGrid& grid) const;
  std::map<int32_t, Room> Rooms() const;

 private:
  struct Source {
    int32_t device = 0;
    std::string name;
    bool of_process = false;
    Room room;
    UntrackedChunks least;
    uint32_t level = 0;  // level of the grid that `least` refers to

    void MergeTo(uint32_t grid_level);
  };

  const uint64_t pid_;
  std::vector<Source> sources_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_DEVICE_SAMPLES_H_
