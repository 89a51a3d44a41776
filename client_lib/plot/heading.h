// What stands above a picture, and the picture as a file.
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

// Title and lines below it, from the top of the picture; returns where what follows may begin.
double DrawHeading(const std::string& title, const std::vector<std::string>& lines, double left,
                   double width, Svg* svg);

// `p100_pcie, 14.86 GiB per GPU`; empty if the report names none.
std::string MachineText(const v1::HardwareReport& report);

// The picture in the format that was asked for.
std::string Finished(const Svg& svg, double width, double height, const std::string& title,
                     const PictureOptions& options);

}  // namespace spillway::plot

#endif  // SPILLWAY_CLIENT_LIB_PLOT_HEADING_H_
