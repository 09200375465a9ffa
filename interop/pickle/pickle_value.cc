#include "interop/pickle/pickle_value.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"

namespace gmt::interop {
namespace {

using Type = PickleValue::Type;

constexpr uint64_t kTextBlock = 256 << 10;

template <typename Vector>
uint64_t BytesOf(const Vector& vector) {
  return vector.size() * sizeof(vector[0]);
}

}  // namespace

const char* TypeName(Type type) {
  switch (type) {
    case Type::kNone:
      return "None";
    case Type::kBool:
      return "bool";
    case Type::kInt:
    case Type::kBigInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kString:
      return "str";
    case Type::kBytes:
      return "bytes";
    case Type::kTuple:
      return "tuple";
    case Type::kList:
      return "list";
    case Type::kDict:
      return "dict";
  }
  return "?";
}

// ---- Hashes ------------------------------------------------------------------------------------

size_t PickleTree::TextHash::operator()(uint32_t id) const {
  return absl::Hash<std::string_view>()(tree->TextOf(id));
}
size_t PickleTree::TextHash::operator()(std::string_view text) const {
  return absl::Hash<std::string_view>()(text);
}

size_t PickleTree::KeyListHash::operator()(uint32_t id) const {
  const auto& keys = tree->key_lists_[id];
  return (*this)(Items{keys.data(), static_cast<uint32_t>(keys.size())});
}
size_t PickleTree::KeyListHash::operator()(Items keys) const {
  return absl::Hash<std::string_view>()(
      {reinterpret_cast<const char*>(keys.data), keys.size * sizeof(PickleValue)});
}
bool PickleTree::KeyListEqual::operator()(uint32_t a, Items b) const {
  const auto& keys = tree->key_lists_[a];
  return std::equal(keys.begin(), keys.end(), b.begin(), b.end());
}

// ---- Reading -----------------------------------------------------------------------------------

std::optional<int64_t> PickleTree::Int(PickleValue value) const {
  if (value.is(Type::kInt)) return value.small_int();
  if (!value.is(Type::kBigInt) || value.payload() >= big_ints_.size()) return std::nullopt;
  return big_ints_[value.payload()];
}

std::optional<double> PickleTree::Float(PickleValue value) const {
  if (!value.is(Type::kFloat)) return std::nullopt;
  return floats_[value.payload()];
}

std::optional<std::string_view> PickleTree::String(PickleValue value) const {
  if (!value.is(Type::kString)) return std::nullopt;
  return TextOf(value.payload());
}

std::string_view PickleTree::Bytes(PickleValue value) const {
  return value.is(Type::kBytes) ? TextOf(value.payload()) : std::string_view();
}

PickleTree::Items PickleTree::ItemsOf(PickleValue sequence) const {
  if (!sequence.is(Type::kList) && !sequence.is(Type::kTuple)) return {};
  const Node& node = nodes_[sequence.payload()];
  return {node.items, node.count};
}

uint32_t PickleTree::SizeOf(PickleValue container) const {
  const bool has_items =
      container.is(Type::kList) || container.is(Type::kTuple) || container.is(Type::kDict);
  return has_items ? nodes_[container.payload()].count : 0;
}

const PickleValue* PickleTree::Find(PickleValue dict, PickleValue key) const {
  if (!dict.is(Type::kDict)) return nullptr;
  const Node& node = nodes_[dict.payload()];
  const PickleValue* keys = KeysOf(node);
  for (uint32_t i = node.count; i-- > 0;) {
    const PickleValue& known = keys == nullptr ? node.items[2 * uint64_t{i}] : keys[i];
    if (known == key) return keys == nullptr ? &known + 1 : &node.items[i];
  }
  return nullptr;
}

const PickleValue* PickleTree::Find(PickleValue dict, std::string_view key) const {
  return Find(dict, Key(key));
}

PickleValue PickleTree::Key(std::string_view text) const {
  const auto known = text_ids_.find(text);
  return {Type::kString, known == text_ids_.end() ? texts_.size() : *known};
}

uint64_t PickleTree::memory() const {
  return BytesOf(nodes_) + values_ * sizeof(PickleValue) + BytesOf(big_ints_) + BytesOf(floats_) +
         BytesOf(texts_) + text_bytes_ + key_lists_.size() * kMaxSharedKeys * sizeof(PickleValue);
}

// ---- Building ----------------------------------------------------------------------------------

PickleValue PickleTree::AddInt(int64_t value) {
  const PickleValue small(Type::kInt, static_cast<uint64_t>(value));
  if (small.small_int() == value) return small;
  big_ints_.push_back(value);
  return {Type::kBigInt, big_ints_.size() - 1};
}

PickleValue PickleTree::AddUnsigned(uint64_t value) {
  if (value <= INT64_MAX) return AddInt(static_cast<int64_t>(value));
  big_ints_.push_back(static_cast<int64_t>(value));
  return {Type::kBigInt, big_ints_.size() - 1};
}

PickleValue PickleTree::AddHugeInt() { return {Type::kBigInt, UINT64_MAX >> 4}; }

PickleValue PickleTree::AddFloat(double value) {
  floats_.push_back(value);
  return {Type::kFloat, floats_.size() - 1};
}

PickleValue PickleTree::AddString(std::string_view text) {
  const auto known = text_ids_.find(text);
  if (known != text_ids_.end()) return {Type::kString, *known};
  const auto id = static_cast<uint32_t>(texts_.size());
  texts_.push_back(Keep(text));
  text_ids_.insert(id);
  return {Type::kString, id};
}

PickleValue PickleTree::AddBytes(std::string_view bytes) {
  texts_.push_back(Keep(bytes));
  return {Type::kBytes, texts_.size() - 1};
}

PickleValue PickleTree::AddContainer(Type type) {
  nodes_.push_back({nullptr, 0, type == Type::kDict ? kOwnKeys : 0});
  return {type, nodes_.size() - 1};
}

bool PickleTree::Extend(PickleValue container, const PickleValue* values, uint64_t count) {
  Node& node = nodes_[container.payload()];
  if (count == 0) return true;
  if (node.count + count > uint64_t{1} << 31) return false;
  if (container.is(Type::kDict)) {
    ExtendDict(node, values, static_cast<uint32_t>(count / 2));
  } else {
    ExtendSequence(node, values, static_cast<uint32_t>(count));
  }
  return true;
}

// Most lists are filled at once and take no more memory than they need.
void PickleTree::ExtendSequence(Node& node, const PickleValue* values, uint32_t count) {
  const uint32_t total = node.count + count;
  if (node.count == 0) {
    node.items = Take(total);
  } else if (total > node.keys_or_room) {
    const uint32_t room = std::bit_ceil(total);
    node.items = Grow(node.items, node.count, room);
    node.keys_or_room = room;
  }
  std::copy_n(values, count, node.items + node.count);
  node.count = total;
}

void PickleTree::ExtendDict(Node& node, const PickleValue* pairs, uint32_t count) {
  if (node.count == 0 && count <= kMaxSharedKeys) {
    node.keys_or_room = InternKeys(pairs, count);
    node.items = Take(count);
    for (uint32_t i = 0; i < count; ++i) node.items[i] = pairs[2 * i + 1];
    node.count = count;
    return;
  }
  GiveOwnKeys(node);
  const uint64_t total = uint64_t{node.count} + count;
  if (std::bit_ceil(total) != std::bit_ceil(uint64_t{node.count}) || node.count == 0)
    node.items = Grow(node.items, 2 * uint64_t{node.count}, 2 * std::bit_ceil(total));
  std::copy_n(pairs, 2 * uint64_t{count}, node.items + 2 * uint64_t{node.count});
  node.count = static_cast<uint32_t>(total);
}

void PickleTree::GiveOwnKeys(Node& node) {
  if (node.count > 0 && node.keys_or_room != kOwnKeys) {
    const PickleValue* keys = KeysOf(node);
    PickleValue* pairs = Take(2 * std::bit_ceil(uint64_t{node.count}));
    for (uint32_t i = 0; i < node.count; ++i) {
      pairs[2 * i] = keys[i];
      pairs[2 * i + 1] = node.items[i];
    }
    node.items = pairs;
  }
  node.keys_or_room = kOwnKeys;
}

uint32_t PickleTree::InternKeys(const PickleValue* pairs, uint32_t count) {
  PickleValue keys[kMaxSharedKeys];
  for (uint32_t i = 0; i < count; ++i) keys[i] = pairs[2 * i];
  const auto known = key_list_ids_.find(Items{keys, count});
  if (known != key_list_ids_.end()) return *known;
  const auto id = static_cast<uint32_t>(key_lists_.size());
  key_lists_.emplace_back(keys, keys + count);
  key_list_ids_.insert(id);
  return id;
}

PickleValue* PickleTree::Take(uint64_t count) {
  if (count > kBlock / 8) {
    values_ += count;
    auto block = std::make_unique_for_overwrite<PickleValue[]>(count);
    PickleValue* items = block.get();
    large_.emplace(items, std::move(block));
    return items;
  }
  if (count > free_count_) {
    values_ += kBlock;
    blocks_.push_back(std::make_unique_for_overwrite<PickleValue[]>(kBlock));
    free_ = blocks_.back().get();
    free_count_ = kBlock;
  }
  free_count_ -= count;
  return std::exchange(free_, free_ + count);
}

PickleValue* PickleTree::Grow(PickleValue* items, uint64_t count, uint64_t room) {
  PickleValue* grown = Take(room);
  std::copy_n(items, count, grown);
  large_.erase(items);
  return grown;
}

PickleTree::Text PickleTree::Keep(std::string_view text) {
  if (text.size() > free_text_size_) {
    const uint64_t size = std::max<uint64_t>(kTextBlock, text.size());
    text_blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    free_text_ = text_blocks_.back().get();
    free_text_size_ = size;
    text_bytes_ += size;
  }
  if (!text.empty()) memcpy(free_text_, text.data(), text.size());
  free_text_size_ -= text.size();
  return {std::exchange(free_text_, free_text_ + text.size()), text.size()};
}

}  // namespace gmt::interop
