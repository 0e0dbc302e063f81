/* portals/portals3.h: another name of portals3.h, for programs that include it under this one. */
#include "../portals3.h"
