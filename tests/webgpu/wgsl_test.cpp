#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "webgpu/wgsl.hpp"

namespace tessera::webgpu {
namespace {

std::string expanded(std::string_view text, const TemplateValues& values = {}) {
  return expand("some.wgsl", text, values);
}

std::string error_of(std::string_view text, const TemplateValues& values = {}) {
  try {
    expanded(text, values);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Wgsl, TextWithoutDirectivesStaysAsItIs) {
  EXPECT_EQ(expanded("fn main() {\n  let a = b[0]; // $ {x} #if\n}\n"),
            "fn main() {\n  let a = b[0]; // $ {x} #if\n}\n");
}

TEST(Wgsl, ValuesAndExpressions) {
  EXPECT_EQ(expanded("${TYPE} a${N + 1}[${N * 4}u];\n", {{"TYPE", "vec4<f32>"}, {"N", int64_t{3}}}),
            "vec4<f32> a4[12u];\n");
  EXPECT_EQ(expanded("${2 + 3 * 4} ${(2 + 3) * 4} ${-7 / 2} ${7 % 4} ${10 - 3 - 2}\n"),
            "14 20 -3 3 5\n");
  EXPECT_EQ(expanded("${1 < 2} ${2 <= 1} ${3 > 2} ${2 >= 3} ${1 == 1} ${1 != 1}\n"),
            "1 0 1 0 1 0\n");
  EXPECT_EQ(expanded("${0 || 2} ${1 && 0} ${!0} ${!3} ${1 || 1 && 0} ${- -4}\n"), "1 0 1 0 1 4\n");
  EXPECT_EQ(expanded("${T == 'f16'} ${T != 'f16'}\n", {{"T", "f16"}}), "1 0\n");
}

TEST(Wgsl, Conditions) {
  const std::string_view text =
      "#if A\na\n  #if B\nab\n  #else\na only\n  #endif\n#else\nnot a\n#endif\n";
  const auto with = [&](int64_t a, int64_t b) { return expanded(text, {{"A", a}, {"B", b}}); };
  EXPECT_EQ(with(1, 1), "a\nab\n");
  EXPECT_EQ(with(1, 0), "a\na only\n");
  EXPECT_EQ(with(0, 1), "not a\n");
  // What is left out need not make sense, only close.
  EXPECT_EQ(expanded("#if 0\n${UNKNOWN}\n#for i in 0..UNKNOWN\n#endfor\n#endif\n"), "");
}

TEST(Wgsl, Loops) {
  EXPECT_EQ(expanded("#for i in 0..3\nc${i} = ${i * i};\n#endfor\n"),
            "c0 = 0;\nc1 = 1;\nc2 = 4;\n");
  EXPECT_EQ(
      expanded("#for i in 1..N\n#for k in i..N\n${i}${k}\n#endfor\n#endfor\n", {{"N", int64_t{3}}}),
      "11\n12\n22\n");
  EXPECT_EQ(expanded("#for i in 3..3\nnever\n#endfor\nend\n"), "end\n");
  EXPECT_EQ(expanded("#for i in 0..2\n#if i == 1\nlast\n#else\nfirst\n#endif\n#endfor\n"),
            "first\nlast\n");
}

TEST(Wgsl, ErrorsSayWhere) {
  EXPECT_EQ(error_of("one\n${NAME}\n"),
            "some.wgsl:2: unknown name 'NAME' in the expression 'NAME'");
  EXPECT_EQ(error_of("#if 1\ntext\n"), "some.wgsl:1: '#if 1' is never closed");
  EXPECT_EQ(error_of("#for i in 0..2\n#if 1\n#endfor\n"), "some.wgsl:3: '#endfor' closes nothing");
  EXPECT_EQ(error_of("\n#else\n"), "some.wgsl:2: '#else' closes nothing");
  EXPECT_EQ(error_of("#iffy\n"),
            "some.wgsl:1: unknown directive '#iffy'; expected #if, #else, #endif, #for, #endfor or "
            "#include");
  EXPECT_EQ(error_of("#for i 0..2\n#endfor\n"), "some.wgsl:1: expected '#for NAME in BEGIN..END'");
  EXPECT_EQ(error_of("a ${1 + \n"), "some.wgsl:1: '${' is never closed");
  EXPECT_EQ(error_of("${1 +}\n"), "some.wgsl:1: expected a value at '' in the expression '1 +'");
  EXPECT_EQ(error_of("${(1}\n"), "some.wgsl:1: expected ')' in the expression '(1'");
  EXPECT_EQ(error_of("${1 2}\n"), "some.wgsl:1: unexpected '2' in the expression '1 2'");
  EXPECT_EQ(error_of("${1 / 0}\n"), "some.wgsl:1: division by zero in the expression '1 / 0'");
  EXPECT_EQ(error_of("${9223372036854775807 + 1}\n"),
            "some.wgsl:1: '+' overflows in the expression '9223372036854775807 + 1'");
  EXPECT_EQ(error_of("${12ab}\n"),
            "some.wgsl:1: '12ab' is not a whole number in the expression '12ab'");
  EXPECT_EQ(error_of("${T + 1}\n", {{"T", "f32"}}),
            "some.wgsl:1: expected a number, got 'f32' in the expression 'T + 1'");
}

TEST(Wgsl, EveryEmbeddedFileIsThere) {
  ASSERT_FALSE(wgsl_files().empty());
  for (const WgslFile& file : wgsl_files()) {
    EXPECT_EQ(wgsl_file(file.path), file.text);
    const bool is_part = file.text.starts_with("// To be included");
    EXPECT_EQ(file.text.find("@compute") == std::string_view::npos, is_part) << file.path;
    EXPECT_EQ(file.text.back(), '\n') << file.path;
  }
  EXPECT_THROW(wgsl_file("no/such.wgsl"), Error);
}

TEST(Wgsl, IncludesAreExpandedWithTheSameValues) {
  const std::string text =
      expand("some.wgsl", "#if A\n#include 'ops/quantize/weight_four.wgsl'\n#endif\n",
             {{"A", int64_t{1}}, {"WEIGHT", std::string("q8_0")}});
  EXPECT_NE(text.find("* 34u"), std::string::npos) << text;
  EXPECT_EQ(text.find("* 20u"), std::string::npos) << text;
  EXPECT_EQ(expand("some.wgsl", "#if 0\n#include 'no/such.wgsl'\n#endif\n", {}), "");
  EXPECT_THROW(expand("some.wgsl", "#include 'no/such.wgsl'\n", {}), Error);
}

TEST(Wgsl, NativeTextHasNoEnableOfSubgroups) {
  const Kernel kernel = {
      .file = "k", .source = "enable f16;\nenable subgroups;\nfn f() {} // enable subgroups;\n"};
  EXPECT_EQ(native_wgsl(kernel), "enable f16;\n\nfn f() {} // enable subgroups;\n");
}

}  // namespace
}  // namespace tessera::webgpu
