/* The compiler, system and processor as PLATFORM_* macros, under the name that clients of
   GASNet-EX include: all is in gasnet_platform.h. */
#ifndef GASNET_PORTABLE_PLATFORM_H
#define GASNET_PORTABLE_PLATFORM_H

#include "gasnet_platform.h"

#endif
