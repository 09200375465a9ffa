// answers/testing/written_bytes.h
//
// For tests: converts printed numbers back to bytes, so that they can be added up.

#ifndef GMT_ANSWERS_TESTING_WRITTEN_BYTES_H_
#define GMT_ANSWERS_TESTING_WRITTEN_BYTES_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gmt::answers {

// BytesOf(1.5, "MiB") == 1572864.
inline double BytesOf(double number, const std::string& unit) {
  for (const auto& [name, factor] :
       {std::pair("B", 1.), {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.}}) {
    if (unit == name) return number * factor;
  }
  ADD_FAILURE() << "no unit: " << unit;
  return 0;
}

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_TESTING_WRITTEN_BYTES_H_
