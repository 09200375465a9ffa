// format/units.h
//
// Byte units.

#ifndef GMT_FORMAT_UNITS_H_
#define GMT_FORMAT_UNITS_H_

#include <cstdint>

namespace gmt {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace gmt

#endif  // GMT_FORMAT_UNITS_H_
