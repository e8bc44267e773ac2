#include "bench/roofline_svg.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tessera::bench {
namespace {

constexpr const char* kStyle = R"(<style>
  svg { --paper: #ffffff; --ink: #1c2128; --soft: #57606a; --grid: #e6e9ed; --tick: #c9ced5;
        --roof: #3d4650; --slope: #8a6d1f; --decode: #0b62c4; --prefill: #b3261e; --matrix: #1a7f37;
        font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14181d; --ink: #e6eaef; --soft: #a3adb8; --grid: #262c33; --tick: #3b434c;
          --roof: #c3ccd6; --slope: #e0b84c; --decode: #6cb2ff; --prefill: #ff8a80;
          --matrix: #6fd08c; }
  }
  .paper { fill: var(--paper); }
  text { fill: var(--ink); }
  .title { font-size: 18px; font-weight: 600; }
  .soft { fill: var(--soft); }
  .grid { stroke: var(--grid); }
  .minor { stroke: var(--tick); }
  .frame { fill: none; stroke: var(--tick); }
  .peak { stroke: var(--roof); stroke-width: 1.6; }
  .slope { stroke: var(--slope); stroke-width: 1.6; }
  .roof { fill: var(--soft); }
  .roof, .point { paint-order: stroke; stroke: var(--paper); stroke-width: 3px;
                  stroke-linejoin: round; }
  .leader { stroke: var(--soft); stroke-width: 0.7; }
  .decode { fill: var(--decode); } .prefill { fill: var(--prefill); }
  .matrix { fill: var(--matrix); }
</style>
)";

std::string xml_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string text_at(Spot at, const std::string& style, const std::string& anchor,
                    const std::string& text, double degrees = 0) {
  const std::string turn = degrees == 0 ? ""
                                        : fmt::format(" transform=\"rotate({:.2f} {:.1f} {:.1f})\"",
                                                      degrees, at.x, at.y);
  return fmt::format(
      "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", style, at.x,
      at.y, anchor, turn, xml_text(text));
}

std::string line_between(const Segment& line, const std::string& style) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style,
      line.from.x, line.from.y, line.to.x, line.to.y);
}

/// A circle, square or triangle, so that groups can be told apart without colours.
std::string mark_at(const Mark& mark) {
  const auto [x, y] = mark.at;
  if (mark.group == "decode") {
    return fmt::format("<circle class=\"decode\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x, y);
  }
  if (mark.group == "prefill") {
    return fmt::format(
        "<rect class=\"prefill\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" height=\"9\"/>\n", x - 4.5,
        y - 4.5);
  }
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f} l5.5 10 h-11 z\"/>\n", mark.group, x,
                     y - 6);
}

/// "0.1", "1", "1,000".
std::string tick_text(int decade) {
  if (decade < 0) return fmt::format("{:.{}f}", std::pow(10, decade), -decade);
  std::string digits(static_cast<size_t>(decade) + 1, '0');
  digits[0] = '1';
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return digits;
}

std::string axis(const Chart& chart, bool horizontal) {
  std::string text;
  const double low = horizontal ? chart.min_x : chart.min_y;
  const double high = horizontal ? chart.max_x : chart.max_y;
  for (int decade = static_cast<int>(std::floor(low)); decade <= high; ++decade) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10, decade);
      if (std::log10(value) < low - 1e-9 || std::log10(value) > high) continue;
      const Box& plot = chart.plot;
      const double at = horizontal ? chart.x(value) : chart.y(value);
      const double reach = digit == 1 ? 0 : digit == 5 ? 8 : 5;  // of a small tick; 0: all through
      if (horizontal) {
        text += line_between({{at, plot.bottom}, {at, reach > 0 ? plot.bottom - reach : plot.top}},
                             reach > 0 ? "minor" : "grid");
        if (reach == 0)
          text += text_at({at, plot.bottom + 20}, "soft", "middle", tick_text(decade));
      } else {
        text += line_between({{plot.left, at}, {reach > 0 ? plot.left + reach : plot.right, at}},
                             reach > 0 ? "minor" : "grid");
        if (reach == 0) text += text_at({plot.left - 8, at + 4}, "soft", "end", tick_text(decade));
      }
    }
  }
  return text;
}

std::string heading(const Roofline& roofline, const Chart& chart) {
  const int n_threads = roofline.all_threads().n_threads;
  std::string text =
      text_at({chart.plot.left, 32}, "title", "start", "Roofline of " + roofline.origin.machine);
  text += text_at(
      {chart.plot.left, 54}, "soft", "start",
      fmt::format("{} thread{}, {}, measured {}, commit {}", n_threads, n_threads == 1 ? "" : "s",
                  roofline.isa, roofline.origin.date, roofline.origin.commit));
  double x = chart.plot.left + 6;
  for (const auto& [group, words] : {std::pair{"decode", "decode, one token"},
                                     {"prefill", "prefill, 512 tokens"},
                                     {"matrix", "products of matrices"}}) {
    text += mark_at({group, {x, 74}});
    text += text_at({x + 12, 78}, "soft", "start", words);
    x += 160;
  }
  text += text_at({x + 12, 78}, "soft", "start",
                  "%: share of the limit that binds the kernel, measured in between its runs");
  return text;
}

}  // namespace

std::string to_svg(const Roofline& roofline) {
  const Chart chart = lay_out(roofline);
  const Box& plot = chart.plot;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
      chart.width, chart.height);
  svg += "<title>" + xml_text("Roofline of " + roofline.origin.machine) + "</title>\n";
  svg += kStyle;
  svg += fmt::format("<rect class=\"paper\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", chart.width,
                     chart.height);
  svg += heading(roofline, chart);
  svg += axis(chart, true) + axis(chart, false);
  svg += fmt::format(
      "<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
      plot.left, plot.top, plot.right - plot.left, plot.bottom - plot.top);
  svg += text_at({(plot.left + plot.right) / 2, chart.height - 20}, "soft", "middle",
                 "operations for each byte that must be moved (FLOP/B)");
  svg +=
      text_at({26, (plot.top + plot.bottom) / 2}, "soft", "middle", "GFLOP/s (int8: GOP/s)", -90);
  for (const Segment& line : chart.slopes) svg += line_between(line, "slope");
  for (const Segment& line : chart.peaks) svg += line_between(line, "peak");
  for (const Label& label : chart.labels) {
    if (label.leader) svg += line_between(*label.leader, "leader");
  }
  for (const Label& label : chart.labels) {
    svg += text_at(label.at, label.style, label.anchor, label.text, label.degrees);
  }
  for (const Mark& mark : chart.marks) svg += mark_at(mark);
  return svg + "</svg>\n";
}

}  // namespace tessera::bench
