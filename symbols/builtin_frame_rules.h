// symbols/builtin_frame_rules.h
//
// The texts of symbols/frame_rules.txt and symbols/library_rules.txt, embedded when the program was
// built (symbols/builtin_frame_rules.cc.in).

#ifndef GMT_SYMBOLS_BUILTIN_FRAME_RULES_H_
#define GMT_SYMBOLS_BUILTIN_FRAME_RULES_H_

#include <string_view>

namespace gmt::symbols {

std::string_view BuiltInFrameRules();
std::string_view BuiltInLibraryRules();

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_BUILTIN_FRAME_RULES_H_
