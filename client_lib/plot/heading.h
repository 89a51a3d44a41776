// The heading of a picture, and the picture as a file.
//
// Thread safety: pure functions.
#ifndef SPILLWAY_CLIENT_LIB_PLOT_HEADING_H_
#define SPILLWAY_CLIENT_LIB_PLOT_HEADING_H_

#include <string>
#include <vector>

#include "client_lib/plot/picture.h"
#include "client_lib/plot/svg.h"
#include "spillway/v1/hardware.pb.h"

namespace spillway::plot {

// Draws the title and lines below it at the top of the picture. Returns the y coordinate where the
// next element may begin.
double DrawHeading(const std::string& title, const std::vector<std::string>& lines, double left,
                   double width, Svg* svg);

// Returns `p100_pcie, 14.86 GiB per GPU`; empty if the report names no machine.
std::string MachineText(const v1::HardwareReport& report);

// Returns the picture in the requested format.
std::string Finished(const Svg& svg, double width, double height, const std::string& title,
                     const PictureOptions& options);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_HEADING_H_
