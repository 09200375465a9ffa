#!/usr/bin/env python3
"""Tests of parsed_lines.py."""

import unittest

import parsed_lines


def wrong(texts, libraries, lines=10):
    return parsed_lines.violations(parsed_lines.Tree(texts), libraries, lambda file: lines)


class ParsedLinesTest(unittest.TestCase):
    USER = {"cli/use.cc": '#include "format/header.h"\n'}

    def test_protobuf_in_a_public_header_is_found_through_other_headers(self):
        texts = {"format/header.h": '#include "format/inner.h"\n',
                 "format/inner.h": '#include "proto/gmt.pb.h"\n', **self.USER}
        found = wrong(texts, {"proto/gmt.pb.h": ["/generated/proto/gmt.pb.h"]})
        self.assertEqual(len(found), 1)
        self.assertIn("format/header.h", found[0])
        self.assertIn("format/inner.h includes proto/gmt.pb.h", found[0])

    def test_protobuf_in_a_private_header_or_a_source_is_allowed(self):
        texts = {"format/inner.h": '#include "proto/gmt.pb.h"\n',
                 "format/inner.cc": '#include "format/inner.h"\n',
                 "format/header.h": "#include <string>\n", **self.USER}
        self.assertEqual(wrong(texts, {"proto/gmt.pb.h": ["/generated/proto/gmt.pb.h"]}), [])

    def test_includes_in_tests_do_not_make_a_header_public(self):
        texts = {"format/inner.h": '#include "proto/gmt.pb.h"\n',
                 "cli/use_test.cc": '#include "format/inner.h"\n'}
        self.assertEqual(wrong(texts, {"proto/gmt.pb.h": ["/generated/proto/gmt.pb.h"]}), [])

    def test_too_many_lines_are_found_and_each_file_counts_once(self):
        texts = {"format/header.h": "#include <a>\n#include <b>\n", **self.USER}
        libraries = {"a": ["/usr/a", "/usr/common"], "b": ["/usr/b", "/usr/common"]}
        third = parsed_lines.MAX_LINES // 3 - 10
        self.assertEqual(wrong(texts, libraries, third), [])
        self.assertIn("more than", wrong(texts, libraries, third + 20)[0])


if __name__ == "__main__":
    unittest.main()
