/* space.h - clients over a named space. Weak: only where the program is linked with Kochab. */
#ifndef KVSTORE_SPACE_H
#define KVSTORE_SPACE_H

/* Opens the space and starts to serve who comes; 0, or an errno value. */
__attribute__((weak)) int space_listen(const char *name);
/* Nobody comes in any more. The space's name is free. */
__attribute__((weak)) void space_stop(void);

#endif
