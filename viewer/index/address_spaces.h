// viewer/index/address_spaces.h
//
// The addresses of a lane as one range without gaps: its segments, or the ranges covered by blocks
// outside segments, one after the other by address. Memory that is allocated, freed and allocated
// again at the same addresses has one place.
//
//   segments    [A 20 MiB]        [B 2 MiB]   [C 4 MiB, mapped page by page]
//   places      0                 20          22            26
//
// Thread safety: one thread.

#ifndef GMT_VIEWER_INDEX_ADDRESS_SPACES_H_
#define GMT_VIEWER_INDEX_ADDRESS_SPACES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::viewer {

// Birth and death are events; a death of kNeverFreed means live at the end.
struct Life {
  uint32_t birth = 0, death = 0;
};

struct Space {
  uint64_t address = 0, size = 0;
  uint64_t place = 0;
  std::string label;
  std::vector<Life> lives;  // by birth, disjoint

  uint64_t end() const { return address + size; }

  template <typename Archive>
  void Visit(Archive& archive) {
    archive.Value(address);
    archive.Value(size);
    archive.Value(place);
    archive.Text(label);
    archive.Items(lives);
  }
};

// Collects address ranges, then maps addresses to places.
class AddressSpaces {
 public:
  // `joins`: an adjacent range that also joins belongs to the same segment.
  void Add(uint64_t address, uint64_t size, Life life, const std::string& label, bool joins);
  // Assigns places. Required before PlaceOf(), and again after further calls of Add().
  void Settle();
  // Returns the place of an address, if it lies in a settled space.
  std::optional<uint64_t> PlaceOf(uint64_t address) const;

  bool empty() const { return added_.empty() && spaces_.empty(); }
  std::vector<Space> Finish() &&;

 private:
  struct Added {
    uint64_t address = 0, end = 0;
    bool joins = false;
    std::string label;
    std::vector<Life> lives;
  };
  static constexpr size_t kMaxLives = 4096;  // of one range; more are merged into one
  // Most blocks lie in segments of at least two mebibytes.
  static constexpr uint64_t kGranule = uint64_t{2} << 20;
  static constexpr size_t kRecent = 1024;

  void Join(std::vector<Added>& sorted);

  std::vector<Added> added_;
  absl::flat_hash_map<uint64_t, size_t> added_at_;  // by address, the one added last
  std::vector<Space> spaces_;                       // by address
  // By the granule of an address: the space that held the last one looked up.
  mutable std::vector<uint32_t> recent_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_ADDRESS_SPACES_H_
