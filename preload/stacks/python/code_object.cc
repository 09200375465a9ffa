#include "preload/stacks/python/code_object.h"

#include <string.h>

#include "preload/base/memory.h"

namespace gmt::preload {
namespace {

size_t PutUtf8(uint32_t c, char* out) {
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  const size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; --i, c >>= 6) out[i] = static_cast<char>(0x80 | (c & 0x3f));
  out[0] = static_cast<char>((0xf00 >> size & 0xff) | c);
  return size;
}

bool IsCharacter(uint32_t c) { return c < 0x110000 && (c < 0xd800 || c > 0xdfff); }

template <typename Unit>
std::string_view ToUtf8(uint64_t data, uint64_t length, char* buffer, size_t capacity) {
  constexpr uint32_t kReplacement = 0xfffd;
  constexpr size_t kLongest = 4;
  size_t size = 0;
  for (uint64_t i = 0; i < length && size + kLongest <= capacity; ++i) {
    const uint32_t c = Load<Unit>(data + i * sizeof(Unit));
    size += PutUtf8(IsCharacter(c) ? c : kReplacement, buffer + size);
  }
  return {buffer, size};
}

}  // namespace

bool ReadCode(const Interpreter& python, uint64_t code, CodeView* view) {
  const Layout& l = python.layout();
  if (code == 0 || Load<uint64_t>(code + l.object_type) != python.api().code_type) return false;
  const auto table = Load<uint64_t>(code + l.code_line_table);
  const auto bytes = Load<uint64_t>(table + l.object_size);
  view->format = static_cast<session::LineTable>(l.line_table);
  view->first_line = Load<uint32_t>(code + l.code_first_line);
  view->name = Load<uint64_t>(code + l.code_name);
  view->file = Load<uint64_t>(code + l.code_file);
  view->line_table = reinterpret_cast<const void*>(table + l.bytes_data);
  view->line_table_bytes = bytes;
  return true;
}

// Bits of the state word: cpython/unicodeobject.h. Code objects contain only compact texts.
std::string_view ReadText(const Interpreter& python, uint64_t text, char* buffer, size_t capacity) {
  const Layout& l = python.layout();
  if (text == 0 || Load<uint64_t>(text + l.object_type) != python.api().text_type) return {};
  const auto length = Load<uint64_t>(text + l.text_length);
  const uint32_t state = Load<uint32_t>(text + l.text_state) >> l.text_kind_shift;
  const uint32_t kind = state & 7;
  const bool compact = (state >> 3 & 1) != 0, ascii = (state >> 4 & 1) != 0;
  if (!compact) return {};
  if (ascii) {
    return {reinterpret_cast<const char*>(text + l.ascii_text),
            length < capacity ? length : capacity};
  }
  const uint64_t data = text + l.compact_text;
  if (kind == 1) return ToUtf8<uint8_t>(data, length, buffer, capacity);
  if (kind == 2) return ToUtf8<uint16_t>(data, length, buffer, capacity);
  if (kind == 4) return ToUtf8<uint32_t>(data, length, buffer, capacity);
  return {};
}

uint32_t InternCode(const Interpreter& python, uint64_t code, const session::CodeTable& codes,
                    const session::TextTable& texts) {
  CodeView view;
  if (!ReadCode(python, code, &view)) return 0;
  char buffer[session::kMaxTextLength];
  session::CodeObject object;
  object.format = view.format;
  object.first_line = view.first_line;
  object.function = texts.Intern(ReadText(python, view.name, buffer, sizeof(buffer)));
  object.file = texts.Intern(ReadText(python, view.file, buffer, sizeof(buffer)));
  object.line_table = view.line_table;
  object.line_table_bytes = view.line_table_bytes;
  return codes.Intern(object);
}

}  // namespace gmt::preload
