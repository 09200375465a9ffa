#include "symbols/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace gmt::symbols {
namespace {

constexpr std::string_view kEllipsis = "...";

bool StartsWithOperator(std::string_view text, size_t at) {
  constexpr std::string_view kOperator = "operator";
  if (text.substr(at, kOperator.size()) != kOperator) return false;
  const bool own_word = at == 0 || text[at - 1] == ':' || text[at - 1] == ' ';
  const char next = at + kOperator.size() < text.size() ? text[at + kOperator.size()] : '\0';
  return own_word && (next == '<' || next == '>' || next == '(' || next == '-');
}

// Returns the end of an operator's name, some characters of which look like brackets: "operator<<",
// "operator()", "operator->".
size_t OperatorEnd(std::string_view text, size_t at) {
  size_t end = at + std::string_view("operator").size();
  if (text.substr(end, 2) == "()") return end + 2;
  while (end < text.size() && std::string_view("<>=-*").find(text[end]) != std::string_view::npos)
    ++end;
  return end;
}

// Removes all text in `open`...`close` pairs, including nested ones. "(anonymous namespace)" is a
// name, not an argument list.
std::string WithoutBrackets(std::string_view text, char open, char close) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    if (depth == 0 && StartsWithOperator(text, i)) {
      const size_t end = OperatorEnd(text, i);
      out.append(text.substr(i, end - i));
      i = end;
      continue;
    }
    if (text.substr(i, kAnonymous.size()) == kAnonymous) {
      if (depth == 0) out.append(kAnonymous);
      i += kAnonymous.size();
      continue;
    }
    const char c = text[i++];
    if (c == open) {
      ++depth;
    } else if (c == close && depth > 0) {
      --depth;
    } else if (depth == 0) {
      out.push_back(c);
    }
  }
  return out;
}

// "at::native::add" -> "native::add" -> "add": removes leading names one by one until it fits.
std::string WithoutNamespaces(std::string_view text, size_t width) {
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i + 1 < text.size() && text.size() - begin > width; ++i) {
    if (text[i] == '(' || text[i] == '<' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == '>' || text[i] == '}') --depth;
    const bool is_end = depth == 0 && text[i] == ':' && text[i + 1] == ':';
    if (is_end && text.substr(i + 2, 8) != "operator") begin = i + 2;
  }
  return std::string(text.substr(begin));
}

std::string_view WithoutQualifiers(std::string_view text) {
  for (std::string_view tail : {" const", " &&", " &"}) {
    if (text.size() > tail.size() && text.substr(text.size() - tail.size()) == tail) {
      text.remove_suffix(tail.size());
    }
  }
  return text;
}

}  // namespace

std::string_view WithoutCloneSuffix(std::string_view function) {
  function = function.substr(0, function.find(" [clone "));
  for (std::string_view copy :
       {".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".localalias"}) {
    function = function.substr(0, function.find(copy));
  }
  return function;
}

// Cuts at the last space outside brackets. The part after an operator's name ("operator new")
// belongs to the name.
std::string_view WithoutReturnType(std::string_view function) {
  size_t name = 0;
  int depth = 0;
  for (size_t i = 0; i < function.size(); ++i) {
    if (function.substr(i, 8) == "operator") break;
    if (function[i] == '(' || function[i] == '<') ++depth;
    if (function[i] == ')' || function[i] == '>') --depth;
    if (function[i] == ' ' && depth == 0 && function.substr(i, 6) != " const") name = i + 1;
  }
  return function.substr(name);
}

std::string Demangle(std::string_view symbol) {
  const std::string name(WithoutCloneSuffix(symbol.substr(0, symbol.find('@'))));
  if (name.size() > kMaxMangledBytes || name.compare(0, 2, "_Z") != 0) return name;
  int status = 0;
  std::unique_ptr<char, decltype(&free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

std::string ShortName(std::string_view function, size_t width) {
  if (function.size() <= width) return std::string(function);
  std::string name = WithoutBrackets(function, '(', ')');
  name = std::string(WithoutQualifiers(name));
  if (name.size() > width) {
    name = WithoutBrackets(name, '<', '>');
    name = std::string(WithoutReturnType(name));
  }
  if (name.size() > width) name = WithoutNamespaces(name, width);
  if (name.size() <= width) return name;
  if (width <= kEllipsis.size()) return name.substr(0, width);
  // The end of a qualified name is more informative than its namespaces.
  return std::string(kEllipsis) + name.substr(name.size() - (width - kEllipsis.size()));
}

std::string BareName(std::string_view function) {
  const std::string name = WithoutBrackets(function, '(', ')');
  return std::string(WithoutReturnType(WithoutQualifiers(name)));
}

}  // namespace gmt::symbols
