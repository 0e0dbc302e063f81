/* Build systems of clients look for this file to find out that there is a portals-conduit. The core API is declared in
   gasnet.h. */
#ifndef GASNET_PORTALS_CONDUIT_CORE_H
#define GASNET_PORTALS_CONDUIT_CORE_H

#include <gasnet.h>

#endif
