#include "cli/top/top_choice.h"

#include <algorithm>
#include <utility>

namespace gmt::cli {
namespace {

constexpr size_t kPage = 10;
constexpr size_t kMaxTyped = 64;

control::TopOrder Next(control::TopOrder order) {
  switch (order) {
    case control::BY_LIVE:
      return control::BY_GROWTH;
    case control::BY_GROWTH:
      return control::BY_RATE;
    default:
      return control::BY_LIVE;
  }
}

// Removes the last character with all of its bytes.
void EraseLast(std::string* text) {
  while (!text->empty() && (static_cast<unsigned char>(text->back()) & 0xc0) == 0x80)
    text->pop_back();
  if (!text->empty()) text->pop_back();
}

void AppendUtf8(int character, std::string* text) {
  const auto c = static_cast<unsigned>(character);
  if (c < 0x80) {
    *text += static_cast<char>(c);
  } else if (c < 0x800) {
    *text += static_cast<char>(0xc0 | c >> 6);
    *text += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *text += static_cast<char>(0xe0 | c >> 12);
    *text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *text += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    *text += static_cast<char>(0xf0 | c >> 18);
    *text += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    *text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    *text += static_cast<char>(0x80 | (c & 0x3f));
  }
}

}  // namespace

TopAction TopChoice::OnTyped(int key) {
  const Typing what = typing;
  if (key == kKeyBackspace) {
    EraseLast(&typed);
  } else if (key >= ' ' && key < kKeyUp && typed.size() < kMaxTyped) {
    AppendUtf8(key, &typed);
  } else if (key == kKeyEscape || key == kKeyEnter) {
    typing = Typing::kNothing;
    if (what == Typing::kMark && key == kKeyEnter && !typed.empty()) return TopAction::kMark;
    if (what == Typing::kFilter && key == kKeyEscape) typed.clear();
  }
  if (what == Typing::kFilter) {
    filter = typed;  // rows are filtered while typing
    row = 0;
  }
  return TopAction::kNone;
}

TopAction TopChoice::OnKey(int key, uint64_t next_pid, size_t rows) {
  if (typing != Typing::kNothing) return OnTyped(key);
  message.clear();
  if (help) {
    help = false;
    return key == 'q' ? TopAction::kQuit : TopAction::kNone;
  }
  const size_t last = rows == 0 ? 0 : rows - 1;
  row = std::min(row, last);
  switch (key) {
    case 'q':
      return TopAction::kQuit;
    case '?':
    case 'h':
      help = true;
      break;
    case 's':
      order = Next(order);
      row = 0;
      return TopAction::kOrder;
    case '/':
      typing = Typing::kFilter;
      typed = filter;
      break;
    case 'f':
    case ' ':
      frozen = !frozen;
      break;
    case 'p':
      return TopAction::kSnapshot;
    case 'm':
      typing = Typing::kMark;
      typed.clear();
      break;
    case kKeyTab:
      pid = next_pid;
      row = 0;
      break;
    case kKeyEnter:
      whole_stack = !whole_stack;
      break;
    case kKeyEscape:
      whole_stack = false;
      filter.clear();
      break;
    case kKeyUp:
    case 'k':
      row -= row > 0 ? 1 : 0;
      break;
    case kKeyDown:
    case 'j':
      row = std::min(row + 1, last);
      break;
    case kKeyPageUp:
      row -= std::min(row, kPage);
      break;
    case kKeyPageDown:
      row = std::min(row + kPage, last);
      break;
    case kKeyHome:
      row = 0;
      break;
    case kKeyEnd:
      row = last;
      break;
    default:
      break;
  }
  return TopAction::kNone;
}

const std::vector<TopHelpLine>& TopHelp() {
  static const auto& lines = *new std::vector<TopHelpLine>{
      {"up down, j k", "choose a stack; PgUp PgDn Home End"},
      {"Enter", "show or hide all frames of the chosen stack"},
      {"s", "change the order: live bytes, growth in the last minute, allocations per second"},
      {"/", "show only stacks with this text; Escape shows all"},
      {"Tab", "next process"},
      {"f, space", "freeze or resume the display"},
      {"p", "take a snapshot into the recording"},
      {"m", "put a named mark into the recording"},
      {"q", "quit; recording continues"},
  };
  return lines;
}

}  // namespace gmt::cli
