#include <bit>
#include <utility>

#include "viewer/slab/slab.h"

namespace gmt::slab {
namespace {

static_assert(std::endian::native == std::endian::little, "slabs are copied as they are in memory");

void PadTo8(std::string& bytes) {
  bytes.append((kAlignment - bytes.size() % kAlignment) % kAlignment, '\0');
}

void AppendLittleEndian(uint64_t value, int size, std::string& bytes) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

const char* NameOf(Type type) {
  switch (type) {
    case Type::kU8:
      return "u8";
    case Type::kU16:
      return "u16";
    case Type::kU32:
      return "u32";
    case Type::kF64:
      return "f64";
  }
  return "";
}

size_t SizeOf(Type type) {
  switch (type) {
    case Type::kU8:
      return 1;
    case Type::kU16:
      return 2;
    case Type::kU32:
      return 4;
    case Type::kF64:
      return 8;
  }
  return 0;
}

Writer::Writer(absl::string_view kind)
    : header_{{"kind", std::string(kind)},
              {"fields", nlohmann::ordered_json::object()},
              {"arrays", nlohmann::ordered_json::array()}} {}

void Writer::AddField(absl::string_view name, nlohmann::ordered_json value) {
  header_["fields"][std::string(name)] = std::move(value);
}

void Writer::AddBytes(absl::string_view name, Type type, const void* data, size_t count) {
  header_["arrays"].push_back(
      {{"name", std::string(name)}, {"type", NameOf(type)}, {"count", count}});
  arrays_.append(static_cast<const char*>(data), count * SizeOf(type));
  PadTo8(arrays_);
}

std::string Writer::Finish() && {
  const std::string header =
      header_.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string bytes(kMagic);
  AppendLittleEndian(kVersion, 2, bytes);
  AppendLittleEndian(0, 2, bytes);
  AppendLittleEndian(header.size(), 4, bytes);
  bytes += header;
  PadTo8(bytes);
  return bytes + arrays_;
}

}  // namespace gmt::slab
