#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "viewer/slab/slab.h"

namespace gmt::slab {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a slab: ", what));
}

uint32_t LittleEndian(const std::string& bytes, size_t offset, int size) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[offset + i])) << (8 * i);
  }
  return value;
}

size_t Aligned(size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

std::optional<Type> ParseType(const Json& name) {
  for (const Type type : {Type::kU8, Type::kU16, Type::kU32, Type::kF64}) {
    if (name == NameOf(type)) return type;
  }
  return std::nullopt;
}

// Returns a member of a JSON object, or null if `json` is not an object or lacks that member.
const Json& Member(const Json& json, const std::string& name) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(name);
  return found == json.end() ? kNull : *found;
}

// Deeper than any header we write; the parser recurses once per level.
constexpr int kMaxDepth = 32;

std::optional<Json> ParseHeader(absl::string_view text) {
  bool too_deep = false;
  const auto watch = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kMaxDepth;
    return !too_deep;
  };
  Json header = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (too_deep || header.is_discarded() || !header.is_object()) return std::nullopt;
  return header;
}

// `*offset`: the offset of the array; advanced to that of the next one.
absl::StatusOr<Slab::Array> ParseArray(const Json& entry, size_t size, size_t* offset) {
  const Json &name = Member(entry, "name"), &count = Member(entry, "count");
  const std::optional<Type> type = ParseType(Member(entry, "type"));
  if (!name.is_string() || !type || !count.is_number_unsigned()) {
    return Damaged("an array lacks a name, type or count");
  }
  const uint64_t elements = count.get<uint64_t>();
  if (*offset > size || elements > (size - *offset) / SizeOf(*type)) {
    return Damaged("an array extends past the end");
  }
  Slab::Array array{name.get<std::string>(), *type, *offset, static_cast<size_t>(elements)};
  *offset = Aligned(*offset + elements * SizeOf(*type));
  return array;
}

}  // namespace

absl::StatusOr<Slab> Slab::Parse(std::string bytes) {
  if (bytes.size() < kPreamble || absl::string_view(bytes).substr(0, 4) != kMagic) {
    return Damaged("it does not begin with GMTV");
  }
  if (const uint32_t version = LittleEndian(bytes, 4, 2); version != kVersion) {
    return absl::UnimplementedError(
        absl::StrCat("this is a slab of version ", version, "; this program reads ", kVersion));
  }
  const size_t length = LittleEndian(bytes, 8, 4);
  if (length > bytes.size() - kPreamble) return Damaged("its header extends past the end");
  const auto header = ParseHeader(absl::string_view(bytes).substr(kPreamble, length));
  if (!header || !Member(*header, "kind").is_string() || !Member(*header, "arrays").is_array()) {
    return Damaged("its header is not JSON with a kind and arrays");
  }
  Slab slab;
  slab.kind_ = Member(*header, "kind").get<std::string>();
  slab.fields_ = Member(*header, "fields");
  size_t offset = Aligned(kPreamble + length);
  for (const Json& entry : Member(*header, "arrays")) {
    if (Member(entry, "name").is_string() && !ParseType(Member(entry, "type"))) {
      return Damaged("an array has an unknown type");
    }
    auto array = ParseArray(entry, bytes.size(), &offset);
    if (!array.ok()) return array.status();
    slab.arrays_.push_back(*std::move(array));
  }
  slab.bytes_ = std::move(bytes);
  return slab;
}

const Json& Slab::Field(absl::string_view name) const { return Member(fields_, std::string(name)); }

const Slab::Array* Slab::Find(absl::string_view name, Type type) const {
  const auto found = std::find_if(arrays_.begin(), arrays_.end(), [&](const Array& array) {
    return array.name == name && array.type == type;
  });
  return found == arrays_.end() ? nullptr : &*found;
}

absl::Status Slab::Missing(absl::string_view name) const {
  return absl::NotFoundError(absl::StrCat("the slab has no such array: ", name));
}

void Slab::Copy(const Array& array, void* to) const {
  if (array.count == 0) return;
  std::memcpy(to, bytes_.data() + array.offset, array.count * SizeOf(array.type));
}

}  // namespace gmt::slab
