#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bench/roofline_svg.hpp"

namespace tessera::bench {
namespace {

constexpr double kCharacter = 7.4;  // mean width at 12 px, generous: fonts differ
constexpr double kAscent = 10, kDescent = 3;
constexpr double kMarkRadius = 5;
constexpr double kNear = 9;  // from the middle of a mark to its label

/// Characters, not bytes.
double text_width(const std::string& text) {
  const auto starts = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
  return kCharacter * static_cast<double>(starts);
}

/// Squares along a line: what a slanted thing covers.
std::vector<Box> boxes_along(const Segment& line, double radius) {
  const double length = std::hypot(line.to.x - line.from.x, line.to.y - line.from.y);
  const int n = std::max(1, static_cast<int>(std::ceil(length / radius)));
  std::vector<Box> boxes;
  for (int i = 0; i <= n; ++i) {
    const double share = static_cast<double>(i) / n;
    const Spot at = {line.from.x + share * (line.to.x - line.from.x),
                     line.from.y + share * (line.to.y - line.from.y)};
    boxes.push_back({at.x - radius, at.y - radius, at.x + radius, at.y + radius});
  }
  return boxes;
}

bool crosses(const Segment& line, const Box& box) {
  // Clips the line to the box.
  double enter = 0, leave = 1;
  const auto clip = [&](double from, double step, double low, double high) {
    if (step == 0) return from >= low && from <= high;
    const double a = (low - from) / step, b = (high - from) / step;
    enter = std::max(enter, std::min(a, b));
    leave = std::min(leave, std::max(a, b));
    return enter <= leave;
  };
  return clip(line.from.x, line.to.x - line.from.x, box.left, box.right) &&
         clip(line.from.y, line.to.y - line.from.y, box.top, box.bottom);
}

bool meet(const std::vector<Box>& some, const std::vector<Box>& others) {
  return std::ranges::any_of(some, [&](const Box& box) {
    return std::ranges::any_of(others, [&](const Box& other) { return box.overlaps(other); });
  });
}

/// Puts labels where nothing else is. Leaders keep off labels, but may cross marks and each other:
/// where points crowd they could not leave otherwise.
class Placer {
 public:
  explicit Placer(Chart& chart) : chart_(chart) {}

  void block(const Box& mark) { marks_.push_back(mark); }

  bool is_free(const Label& label) const {
    const auto inside = [&](const Box& box) { return box.inside(chart_.plot); };
    return std::ranges::all_of(label.boxes, inside) && !meet(label.boxes, marks_) &&
           !meet(label.boxes, texts_) && !meet(label.boxes, leaders_) &&
           (!label.leader || !meet(boxes_along(*label.leader, 2), texts_));
  }

  void place(Label label) {
    texts_.insert(texts_.end(), label.boxes.begin(), label.boxes.end());
    if (label.leader) {
      const std::vector<Box> way = boxes_along(*label.leader, 2);
      leaders_.insert(leaders_.end(), way.begin(), way.end());
    }
    chart_.labels.push_back(std::move(label));
  }

 private:
  Chart& chart_;
  std::vector<Box> marks_, texts_, leaders_;
};

Label label_beside(const std::string& text, const std::string& style, Spot mark, double radius,
                   double angle) {
  const double width = text_width(text), side = std::cos(angle);
  const Spot at = {mark.x + radius * side, mark.y + radius * std::sin(angle)};
  const bool to_the_right = side > 0.3, to_the_left = side < -0.3;
  const double left = to_the_right ? at.x : to_the_left ? at.x - width : at.x - width / 2;
  const Box box = {left, at.y - 7, left + width, at.y + 7};
  Label label = {.text = text,
                 .style = style,
                 .at = {at.x, at.y + 4},
                 .anchor = to_the_right  ? "start"
                           : to_the_left ? "end"
                                         : "middle",
                 .boxes = {box},
                 .leader = std::nullopt};
  if (radius > 14) {
    const Spot end = {std::clamp(mark.x, box.left, box.right),
                      std::clamp(mark.y, box.top, box.bottom)};
    const double distance = std::hypot(end.x - mark.x, end.y - mark.y);
    const double share = kMarkRadius / std::max(distance, kMarkRadius);
    label.leader = {{mark.x + share * (end.x - mark.x), mark.y + share * (end.y - mark.y)}, end};
  }
  return label;
}

/// The nearest free place around the mark, preferably off the roofs' lines; false if there is none.
bool place_beside(Placer& placer, const Chart& chart, Spot mark, const std::string& text,
                  const std::string& style, double min_radius = kNear) {
  constexpr int kDirections = 48;
  std::optional<Label> best;
  double best_cost = 0;
  for (double radius = min_radius; radius < chart.width; radius *= 1.15) {
    if (best && radius > best_cost) break;
    for (int i = 0; i < kDirections; ++i) {
      Label label = label_beside(text, style, mark, radius, 2 * std::numbers::pi * i / kDirections);
      if (!placer.is_free(label)) continue;
      double cost = radius;
      for (const auto* lines : {&chart.peaks, &chart.slopes}) {
        for (const Segment& line : *lines) cost += crosses(line, label.boxes.front()) ? 12 : 0;
      }
      if (!best || cost < best_cost) {
        best = std::move(label);
        best_cost = cost;
      }
    }
  }
  if (best) placer.place(*best);
  return best.has_value();
}

Spot middle_of(const Segment& line) {
  return {(line.from.x + line.to.x) / 2, (line.from.y + line.to.y) / 2};
}

/// Above or below the horizontal line, as far right as there is room.
bool place_peak(Placer& placer, const Chart& chart, const Segment& line, const std::string& text) {
  const double width = text_width(text);
  for (double right = line.to.x - 4; right - width > line.from.x; right -= 20) {
    for (const double y : {line.to.y - 5, line.to.y + kAscent + 4}) {
      const Label label = {.text = text,
                           .style = "roof",
                           .at = {right, y},
                           .anchor = "end",
                           .boxes = {{right - width, y - kAscent, right, y + kDescent}},
                           .leader = std::nullopt};
      if (placer.is_free(label)) {
        placer.place(label);
        return true;
      }
    }
  }
  return place_beside(placer, chart, middle_of(line), text, "roof");
}

/// Along the slope, as near to its lower end as there is room.
bool place_slope(Placer& placer, const Chart& chart, const Segment& line, const std::string& text) {
  const double dx = line.to.x - line.from.x, dy = line.to.y - line.from.y;
  const double length = std::hypot(dx, dy), width = text_width(text);
  const Spot along = {dx / length, dy / length};
  for (double start = 10; start + width < length; start += 12) {
    // The base line runs 5 px above the slope, the middle of the letters another 4.
    const Spot foot = {line.from.x + start * along.x, line.from.y + start * along.y};
    const Spot at = {foot.x + 5 * along.y, foot.y - 5 * along.x};
    const Spot middle = {foot.x + 9 * along.y, foot.y - 9 * along.x};
    const Segment extent = {middle, {middle.x + width * along.x, middle.y + width * along.y}};
    const Label label = {.text = text,
                         .style = "roof",
                         .at = at,
                         .degrees = std::atan2(dy, dx) * 180 / std::numbers::pi,
                         .boxes = boxes_along(extent, 6),
                         .leader = std::nullopt};
    if (placer.is_free(label)) {
      placer.place(label);
      return true;
    }
  }
  return place_beside(placer, chart, middle_of(line), text, "roof");
}

void choose_axes(const Roofline& roofline, Chart& chart) {
  const Ceilings& ceilings = roofline.all_threads();
  double low_x = 0.1, high_x = 1000, low_y = 1, high_y = 1;
  for (const Ceilings::PeakFigure& peak : ceilings.peaks) {
    high_y = std::max(high_y, peak.gops);
    high_x = std::max(high_x, 1.5 * balance(peak, ceilings.levels.back()));
  }
  for (const RooflinePoint& point : roofline.points) {
    const double intensity = point.row.intensity(), gflops = point.row.gflops();
    if (intensity <= 0 || gflops <= 0) continue;
    low_x = std::min(low_x, intensity / 1.5);
    high_x = std::max(high_x, intensity * 2);
    low_y = std::min(low_y, gflops / 2);
    high_y = std::max(high_y, gflops);
  }
  chart.min_x = std::log10(low_x);
  chart.max_x = std::log10(high_x);
  chart.min_y = std::log10(low_y);
  chart.max_y = std::log10(high_y * 1.8);
}

struct RoofTexts {
  std::vector<std::string> peaks, slopes;
};

RoofTexts add_roofs(const Ceilings& ceilings, Chart& chart) {
  double highest = 0, fastest = 0;
  for (const auto& peak : ceilings.peaks) highest = std::max(highest, peak.gops);
  for (const MemoryFigures& level : ceilings.levels) fastest = std::max(fastest, level.read_gbs);
  const double floor = std::pow(10, chart.min_y), left = std::pow(10, chart.min_x);
  const double right = std::pow(10, chart.max_x);
  RoofTexts texts;
  for (const Ceilings::PeakFigure& peak : ceilings.peaks) {
    const double from = std::max(left, peak.gops / fastest);
    chart.peaks.push_back(
        {{chart.x(from), chart.y(peak.gops)}, {chart.x(right), chart.y(peak.gops)}});
    texts.peaks.push_back(fmt::format("{} {:.0f} {}", name(peak.peak), peak.gops, unit(peak.peak)));
  }
  for (const MemoryFigures& level : ceilings.levels) {
    const double from = std::max(left, floor / level.read_gbs);
    const double to = std::min(right, highest / level.read_gbs);
    chart.slopes.push_back({{chart.x(from), chart.y(from * level.read_gbs)},
                            {chart.x(to), chart.y(to * level.read_gbs)}});
    texts.slopes.push_back(
        fmt::format("{} ({}) {:.0f} GB/s", level.name, short_bytes(level.bytes), level.read_gbs));
  }
  return texts;
}

/// False when one had no place.
bool place_roofs(const RoofTexts& texts, const Chart& chart, Placer& placer) {
  bool all = true;
  for (size_t i = 0; i < texts.peaks.size(); ++i) {
    all &= place_peak(placer, chart, chart.peaks[i], texts.peaks[i]);
  }
  for (size_t i = 0; i < texts.slopes.size(); ++i) {
    all &= place_slope(placer, chart, chart.slopes[i], texts.slopes[i]);
  }
  return all;
}

}  // namespace

double Chart::x(double intensity) const {
  return plot.left + (std::log10(intensity) - min_x) / (max_x - min_x) * (plot.right - plot.left);
}

double Chart::y(double gflops) const {
  return plot.bottom - (std::log10(gflops) - min_y) / (max_y - min_y) * (plot.bottom - plot.top);
}

namespace {

/// Lays the chart out; labels of marks that crowd keep `distance` away, so that the leaders of all
/// of them find a way out. False when some label had no place.
bool try_lay_out(const Roofline& roofline, double distance, Chart& chart) {
  choose_axes(roofline, chart);
  Placer placer(chart);
  std::vector<std::string> texts;
  for (const RooflinePoint& point : roofline.points) {
    const double intensity = point.row.intensity(), gflops = point.row.gflops();
    if (intensity <= 0 || gflops <= 0) continue;
    const Spot at = {chart.x(intensity), chart.y(gflops)};
    chart.marks.push_back({point.group, at});
    texts.push_back(fmt::format("{} {:.0f} %", point.label, point.row.percent()));
    constexpr double kRadius = kMarkRadius + 1;
    placer.block({at.x - kRadius, at.y - kRadius, at.x + kRadius, at.y + kRadius});
  }
  // Points first: the labels of roofs can slide along their lines.
  const RoofTexts roofs = add_roofs(roofline.all_threads(), chart);
  bool all = true;
  for (size_t i = 0; i < chart.marks.size(); ++i) {
    const Spot at = chart.marks[i].at;
    const auto n_near = std::ranges::count_if(chart.marks, [&](const Mark& other) {
      return std::hypot(other.at.x - at.x, other.at.y - at.y) < 4 * kMarkRadius;
    });
    all &= place_beside(placer, chart, at, texts[i], "point", n_near > 2 ? distance : kNear);
  }
  return place_roofs(roofs, chart, placer) && all;
}

}  // namespace

Chart lay_out(const Roofline& roofline) {
  Chart chart;
  for (const double distance : {kNear, 24.0, 48.0, 80.0, 120.0, 170.0, 230.0}) {
    chart = {};
    if (try_lay_out(roofline, distance, chart)) break;
  }
  return chart;
}

}  // namespace tessera::bench
