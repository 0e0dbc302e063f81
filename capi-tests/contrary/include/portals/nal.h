/* portals/nal.h of libportals-contrary: its interfaces, named by bridge and network abstraction
 * layer as on a Cray XT. That of user space under Linux is the one that opens; that of Catamount
 * and the default of portals3.h are refused. */
#ifndef CONTRARY_NAL_H
#define CONTRARY_NAL_H

#include <portals/portals3.h>

#define PTL_BRIDGE_UK 3
#define PTL_BRIDGE_QK 4
#define PTL_IFACE_SS 5
ptl_interface_t contrary_interface(int bridge, int nal);
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) contrary_interface(bridge, nal)

#endif
