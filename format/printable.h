// format/printable.h
//
// Text from files and from other processes (names, paths, marks, settings, command lines), made
// safe to print. A terminal would execute control characters in it, and line breaks or
// bidirectional overrides would let a name imitate or reorder the lines around it.
//
// Thread safety: pure functions.

#ifndef GMT_FORMAT_PRINTABLE_H_
#define GMT_FORMAT_PRINTABLE_H_

#include <string>
#include <string_view>

namespace google::protobuf {
class Message;
}

namespace gmt::format {

struct EventBatch;

// Returns `text` with visible escapes in place of
//   control characters   C0 (line breaks and tabs among them), DEL, C1       \n \t \x1b \x7f \x9b
//   line separators      U+2028, U+2029                                      \u2028
//   direction controls   U+061C, U+200E, U+200F, U+202A-E, U+2066-9          \u202e
//   invalid UTF-8        each byte                                           \xff
std::string Printable(std::string_view text);

// Does the same for all text in `message` and in the messages inside it. Not for messages with raw
// bytes, such as build ids.
void MakePrintable(google::protobuf::Message* message);
// The same for the messages of a batch. Events themselves have no text, only ids of definitions.
void MakePrintable(EventBatch* batch);

}  // namespace gmt::format

#endif  // GMT_FORMAT_PRINTABLE_H_
