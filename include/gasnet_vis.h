/* gasnet_vis.h of GASNet-1. The type gasnet_memvec_t, which gasnet.h declares too, is here; this release of the library
   does not supply the vector, indexed and strided functions, so none is declared. */
#ifndef _GASNET_VIS_H
#define _GASNET_VIS_H

#include "gasnet.h"

#endif
