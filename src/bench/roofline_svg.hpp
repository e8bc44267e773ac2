#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/roofline.hpp"

namespace tessera::bench {

struct Spot {
  double x = 0, y = 0;
};

/// Pixels, y downwards.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool inside(const Box& other) const {
    return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
  }
};

struct Segment {
  Spot from, to;
};

/// Text in the plot. `boxes` cover it, several where it is slanted.
struct Label {
  std::string text;
  std::string style;  ///< CSS class
  Spot at;            ///< of the anchor, on the base line
  std::string anchor = "start";
  double degrees = 0;
  std::vector<Box> boxes;
  std::optional<Segment> leader;  ///< to the mark, when that is not next to it
};

struct Mark {
  std::string group;
  Spot at;
};

/// Where everything of the log-log plot goes.
struct Chart {
  double width = 1280, height = 860;
  Box plot = {84, 92, 1256, 790};
  double min_x = 0, max_x = 0, min_y = 0, max_y = 0;  ///< log10 of the ends of the axes
  std::vector<Segment> peaks, slopes;
  std::vector<Mark> marks;
  std::vector<Label> labels;  ///< no two overlap

  double x(double intensity) const;
  double y(double gflops) const;
};

/// Points without operations have no place on a logarithmic axis and are left out.
Chart lay_out(const Roofline& roofline);

/// The chart as a file of its own, light or dark as the reader's system is.
std::string to_svg(const Roofline& roofline);

}  // namespace tessera::bench
