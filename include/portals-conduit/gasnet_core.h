/* Build systems of clients look for this file to detect the portals-conduit. gasnet.h declares the
   core API. */
#ifndef GASNET_PORTALS_CONDUIT_CORE_H
#define GASNET_PORTALS_CONDUIT_CORE_H

#include <gasnet.h>

#endif
