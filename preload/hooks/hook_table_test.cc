// Checks the hook table against CUDA's headers: every declared function is accounted for, and the
// names and versions of driver queries match the typedefs.

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::preload {
namespace {

using Names = std::set<std::string>;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Header(const char* name) { return Contents(std::string(GMT_CUDA_HEADERS "/") + name); }

Names Matches(const std::string& text, const char* pattern) {
  Names names;
  const std::regex regex(pattern);
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

// Removes the suffixes of variants: cuMemAllocAsync_ptsz becomes cuMemAllocAsync, and cuMemAlloc_v2
// becomes cuMemAlloc.
std::string Base(std::string name) {
  static const auto& suffix = *new std::regex("(_v[0-9]+)?(_ptsz|_ptds)?$");
  return std::regex_replace(name, suffix, "", std::regex_constants::format_first_only);
}
Names Bases(const Names& names) {
  Names bases;
  for (const std::string& name : names) bases.insert(Base(name));
  return bases;
}

Names Hooked() {
  return {
#define GMT_RUNTIME(name, parameters, arguments, event) #name,
#define GMT_DRIVER(name, query, version, parameters, arguments, event) #name,
#include "preload/hooks/hook_table.inc"
  };
}

Names Unhooked() {
  Names names;
  std::istringstream lines(Contents(GMT_UNHOOKED_FUNCTIONS));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    for (std::string word; line[0] != '#' && words >> word;) names.insert(word);
  }
  return names;
}

// Returns everything that the headers declare; for the driver, the names that macros give its
// variants.
Names Declared() {
  const std::string driver = Header("cuda.h"), runtime = Header("cuda_runtime_api.h");
  Names names = Matches(driver, "CUDAAPI\\s+(cu\\w+)\\s*\\(");
  names.merge(Matches(driver, "#define\\s+cu\\w+\\s+(cu\\w+_v[0-9]+)\\b"));
  names.merge(Matches(runtime, "CUDARTAPI(?:_CDECL)?\\s+(cuda\\w+)\\s*\\("));
  for (const std::string& name :
       Matches(runtime, "#define\\s+cuda\\w+\\s+__CUDART_API_PTSZ\\((cuda\\w+)\\)"))
    names.insert(name + "_ptsz");
  return names;
}

TEST(HookTableTest, EveryDeclaredFunctionIsHookedOrHasAReasonNotToBe) {
  const Names hooked = Hooked(), hooked_bases = Bases(hooked), unhooked = Unhooked();
  Names overlooked;
  for (const std::string& name : Declared()) {
    const bool accounted =
        hooked_bases.contains(Base(name)) ? hooked.contains(name) : unhooked.contains(Base(name));
    if (!accounted) overlooked.insert(name);
  }
  EXPECT_THAT(overlooked, testing::IsEmpty());
  EXPECT_GT(Declared().size(), 900u);
}

TEST(HookTableTest, FunctionsListedAsUnhookedExistAndAreNotHooked) {
  const Names hooked = Bases(Hooked()), declared = Bases(Declared());
  for (const std::string& name : Unhooked()) {
    EXPECT_TRUE(declared.contains(name)) << name << " is in no header";
    EXPECT_FALSE(hooked.contains(name)) << name << " is hooked";
  }
}

// cudaTypedefs.h names a type for each variant that the driver distinguishes:
// PFN_NAME_vVERSION[_ptsz].
TEST(HookTableTest, QueriesAndVersionsMatchTheTypedefs) {
  using Variant = std::tuple<std::string, unsigned, bool>;
  std::set<Variant> table;
#define GMT_RUNTIME(name, parameters, arguments, event)
#define GMT_DRIVER(name, query, version, parameters, arguments, event) \
  table.insert({query, version, false});
#define GMT_DRIVER_PER_THREAD(name, query, version, parameters, arguments, event) \
  table.insert({query, version, true});
#include "preload/hooks/hook_table.inc"
  Names queries;
  for (const auto& [query, version, per_thread] : table) queries.insert(query);

  std::set<Variant> typedefs;
  const std::string text = Header("cudaTypedefs.h");
  const std::regex regex("\\*PFN_(cu\\w+?)_v([0-9]+)(_ptsz|_ptds)?\\)");
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) {
    const unsigned version = static_cast<unsigned>(std::stoul((*i)[2]));
    if (queries.contains((*i)[1])) typedefs.insert({(*i)[1], version, (*i)[3].matched});
  }
  EXPECT_EQ(table, typedefs);
}

}  // namespace
}  // namespace gmt::preload
