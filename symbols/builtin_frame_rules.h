// symbols/builtin_frame_rules.h
//
// The text of symbols/frame_rules.txt, as it was when the program was built
// (symbols/builtin_frame_rules.cc.in).

#ifndef GMT_SYMBOLS_BUILTIN_FRAME_RULES_H_
#define GMT_SYMBOLS_BUILTIN_FRAME_RULES_H_

#include <string_view>

namespace gmt::symbols {

std::string_view BuiltInFrameRules();

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_BUILTIN_FRAME_RULES_H_
