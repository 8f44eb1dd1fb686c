/* Another translation unit with its own look-up; most of the header is unused here. */
#include "heaptally.h"

#ifdef __cplusplus
extern "C"
#endif
    void
    second_file(void);

void second_file(void)
{
    heaptally_window_begin("second");
    heaptally_window_end("second");
}
