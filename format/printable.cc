#include "format/printable.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"
#include "format/event.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint32_t kInvalid = UINT32_MAX;

bool IsPlain(unsigned char c) { return c >= ' ' && c < 0x7f; }

// Returns the code point at the beginning of `text`, which is not empty, and its bytes; kInvalid
// and 1 if these are not UTF-8 (RFC 3629: no overlong forms, no surrogates).
uint32_t FirstCodePoint(std::string_view text, size_t* bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  *bytes = 1;
  const unsigned char first = at(0);
  if (first < 0x80) return first;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return kInvalid;
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return kInvalid;
    code = code << 6 | (at(i) & 0x3f);
  }
  constexpr uint32_t kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kFirstOfLength[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
    return kInvalid;
  *bytes = length;
  return code;
}

bool IsLineOrDirectionControl(uint32_t code) {
  return code == 0x2028 || code == 0x2029 || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void AppendEscaped(std::string_view bytes, uint32_t code, std::string* out) {
  if (code == '\n') {
    out->append("\\n");
  } else if (code == '\t') {
    out->append("\\t");
  } else if (code == '\r') {
    out->append("\\r");
  } else if (code == kInvalid) {
    absl::StrAppendFormat(out, "\\x%02x", static_cast<unsigned char>(bytes[0]));
  } else if (code < ' ' || (code >= 0x7f && code < 0xa0)) {
    absl::StrAppendFormat(out, "\\x%02x", code);
  } else if (IsLineOrDirectionControl(code)) {
    absl::StrAppendFormat(out, "\\u%04x", code);
  } else {
    out->append(bytes);
  }
}

void MakeFieldPrintable(Message* message, const FieldDescriptor* field) {
  const Reflection* reflection = message->GetReflection();
  const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field->is_repeated()) {
    if (is_text)
      reflection->SetString(message, field, Printable(reflection->GetString(*message, field)));
    if (is_message) MakePrintable(reflection->MutableMessage(message, field));
    return;
  }
  const int count = reflection->FieldSize(*message, field);
  for (int i = 0; i < count; ++i) {
    if (is_text)
      reflection->SetRepeatedString(message, field, i,
                                    Printable(reflection->GetRepeatedString(*message, field, i)));
    if (is_message) MakePrintable(reflection->MutableRepeatedMessage(message, field, i));
  }
}

}  // namespace

std::string Printable(std::string_view text) {
  const auto first = std::find_if_not(text.begin(), text.end(), IsPlain);
  std::string out(text.begin(), first);
  for (auto rest = text.substr(out.size()); !rest.empty();) {
    size_t bytes;
    const uint32_t code = FirstCodePoint(rest, &bytes);
    AppendEscaped(rest.substr(0, bytes), code, &out);
    rest.remove_prefix(bytes);
  }
  return out;
}

void MakePrintable(Message* message) {
  std::vector<const FieldDescriptor*> fields;
  message->GetReflection()->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) MakeFieldPrintable(message, field);
}

void MakePrintable(EventBatch* batch) {
  for (Sample& sample : batch->samples) MakePrintable(&sample);
  for (SnapshotTaken& snapshot : batch->snapshots) MakePrintable(&snapshot);
  for (Gap& gap : batch->gaps) MakePrintable(&gap);
}

}  // namespace gmt::format
