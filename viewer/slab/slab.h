// viewer/slab/slab.h
//
// A slab: columns of numbers and a few fields, in the form in which the page receives them. The
// page creates typed arrays on its bytes without copying, which is why arrays begin at multiples of
// 8.
//
//   0   "GMTV"
//   4   u16 version, u16 0
//   8   u32 length of the header
//   12  header, JSON: {"kind": "blocks", "fields": {...},
//                      "arrays": [{"name": "row", "type": "u32", "count": 12}, ...]}
//   ..  zeros up to a multiple of 8, then each array, followed by zeros up to a multiple of 8
//
// Little-endian. A reader ignores arrays and fields that it does not know and refuses other
// versions; it validates everything else. viewer/page/src/data/slab.ts is the page's reader.
//
// Numbers of the header that JSON cannot express (infinity, NaN) are null; arrays hold them as they
// are.
// Thread safety: plain data.

#ifndef GMT_VIEWER_SLAB_SLAB_H_
#define GMT_VIEWER_SLAB_SLAB_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gmt::slab {

inline constexpr uint16_t kVersion = 1;

enum class Type : uint8_t { kU8, kU16, kU32, kF64 };

template <typename T>
constexpr Type TypeOf() {
  if constexpr (std::is_same_v<T, uint8_t>) return Type::kU8;
  if constexpr (std::is_same_v<T, uint16_t>) return Type::kU16;
  if constexpr (std::is_same_v<T, uint32_t>) return Type::kU32;
  if constexpr (std::is_same_v<T, double>) return Type::kF64;
}

class Writer {
 public:
  explicit Writer(absl::string_view kind);

  void AddField(absl::string_view name, nlohmann::ordered_json value);

  // Copies the array. REQUIRES: no other array has that name.
  template <typename T>
  void AddArray(absl::string_view name, absl::Span<const T> values) {
    AddBytes(name, TypeOf<T>(), values.data(), values.size());
  }
  template <typename T>
  void AddArray(absl::string_view name, const std::vector<T>& values) {
    AddArray(name, absl::Span<const T>(values));
  }

  std::string Finish() &&;

 private:
  void AddBytes(absl::string_view name, Type type, const void* data, size_t count);

  nlohmann::ordered_json header_;
  std::string arrays_;
};

// Validated bytes of a slab. Owns them.
class Slab {
 public:
  static absl::StatusOr<Slab> Parse(std::string bytes);

  const std::string& kind() const { return kind_; }
  // Returns null if there is no field of that name.
  const nlohmann::ordered_json& Field(absl::string_view name) const;

  struct Array {
    std::string name;
    Type type = Type::kU8;
    size_t offset = 0, count = 0;  // of the first element in the slab's bytes; in elements
  };
  const std::vector<Array>& arrays() const { return arrays_; }

  // Fails if there is no array of that name and type.
  template <typename T>
  absl::StatusOr<std::vector<T>> Values(absl::string_view name) const {
    const Array* array = Find(name, TypeOf<T>());
    if (array == nullptr) return Missing(name);
    std::vector<T> values(array->count);
    Copy(*array, values.data());
    return values;
  }

 private:
  const Array* Find(absl::string_view name, Type type) const;
  absl::Status Missing(absl::string_view name) const;
  void Copy(const Array& array, void* to) const;

  std::string bytes_, kind_;
  nlohmann::ordered_json fields_;
  std::vector<Array> arrays_;
};

// Shared by the reader and the writer.
inline constexpr absl::string_view kMagic = "GMTV";
inline constexpr size_t kPreamble = 12, kAlignment = 8;
const char* NameOf(Type type);
size_t SizeOf(Type type);

}  // namespace gmt::slab

#endif  // GMT_VIEWER_SLAB_SLAB_H_
