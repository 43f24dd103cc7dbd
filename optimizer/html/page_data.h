/// What the script of a report's page knows: both graphs as they are drawn, and the applications of rules.
#pragma once

#include <string>

#include "optimizer/html/html_report.h"

namespace taso {

/// One line of JSON, safe within a script element. A graph of some thousand nodes is to fit, so nodes are columns, and
/// texts are numbers of `strings`, of which the first is empty:
///
///   strings                  all texts
///   regions                  number of changed regions; they count from 1, 0 is none
///   baseline                 so many of the applications, the first ones, made the baseline
///   unit                     of the costs of applications, or null if these are not told (tells_costs)
///   applications             columns rule, place, region; names: lists of the nodes' names; before, after: costs
///   carried                  per operator that is carried [name, reason]
///   graphs                   original and result, each:
///     boxes                  columns layer, left, reads (distances to the boxes read, or lists of them), kind (0
///     input,
///                            1 operator, 2 carried), label, types, attributes, name, region, twin (the box of the same
///                            node in the other graph, from 1; 0: none)
///     lanes                  per box that has one: [box, left, left, ...] (GraphDrawing::Box::lane)
///     outputs                boxes that outputs of the graph are read from
///     around                 per region without a box here: [region, box, box, ...], where it would be
///     kernels                different launches [operator, layouts, implementation, MFLOP, MB, predicted us or null]
///     launches               columns box, kernel; measured: in us, or null
///     width, layers          of the drawing
///   box                      [width, height, height of a layer] of the drawing
[[nodiscard]] std::string page_data(const HtmlReport& report);

}  // namespace taso
