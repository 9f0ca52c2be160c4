/* kochab/version.h - the only file that states the version. */
#ifndef KOCHAB_VERSION_H
#define KOCHAB_VERSION_H

#define KOCHAB_VERSION_MAJOR 0
#define KOCHAB_VERSION_MINOR 1
#define KOCHAB_VERSION_PATCH 0
#define KOCHAB_VERSION "0.1.0"

#endif
